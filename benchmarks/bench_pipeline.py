"""Source → decode → analyse → aggregate, beside what the engine does with the same rows of Parquet.

The stream reads 100,000 segments a micro-batch from a queue on disk, makes of their spans all that
trace analysis says of services, instances, endpoints, relations and virtual services, and adds up
every shipped metric. The limit is the same aggregation over the same rows, already made and
exploded, from Parquet, in the same session, in turns with the stream. Medians of the batches after
the warm-up.

Then, without the limit: what a segment costs after 5 million of them, beside what it cost at first;
and a batch of 5,000 beside one of nothing. And what it costs with 10,000 endpoints in place of 10,
with the same of the limit: the result has 25 times as many rows, which Spark has to carry for both.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from figures import figure
from skyfarer.base.units import GIB, MIB
from skyfarer.oap.core.entities import REPORTED, TRACED
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic import attribute, emitted, wanted_by
from skyfarer.oap.pipeline.lowering import Lowered, lowered
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sources.decode import DECODERS
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.sources.shapes import SEGMENT
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.clock import HandClock
from skyfarer.testing.traces import segment
from skyfarer.testing.traffic import DemoTraffic
from skyfarer.wire.messages import runtime
from skyfarer.wire.rpc import Kind

BATCH = 100_000
BATCHES = 10
WARM_UP = 4
DISTINCT = 20_000
LONG = 5_000_000
SMALL = 5_000
JVMS = 1_000
SMALL_TIMES = 15
ENDPOINTS = (10, 10_000)
TURNS = 30
TURNS_WARM_UP = 10
FLAT_MAX = 1.25
NOON_MS = 1_794_744_000_000
PLAN = plan_of(shipped()).of(TRACED)
METRICS = Metrics(PLAN, AnalysisSettings())


def payloads() -> list[bytes]:
    traffic = DemoTraffic(Random(1), HandClock(NOON_MS))
    found: list[bytes] = []
    while len(found) < DISTINCT:
        segments = traffic.trace(NOON_MS + len(found) * 10)
        found += [segment.SerializeToString() for segment in segments]
    return found[:DISTINCT]


def called(endpoints: int) -> list[bytes]:
    """Segments of one span each, of so many endpoints in turn."""
    made = [
        segment("shop", "shop-1", f"/{n % endpoints}", NOON_MS + n, n % 700, segment_id=str(n))
        for n in range(DISTINCT)
    ]
    return [one.SerializeToString() for one in made]


def fill_queue(directory: Path, segments: list[bytes], count: int = BATCH * BATCHES) -> None:
    settings = QueueSettings(
        directory, segment_bytes=16 * MIB, capacity_bytes=8 * GIB, consumers=("bench",)
    )
    writer = Writer(settings)
    writer.start()
    for _ in range(count // DISTINCT):
        for first in range(0, DISTINCT, 100):
            writer.append(Kind.SEGMENT, segments[first : first + 100])
    writer.stop(10)


def write_rows(session: SparkSession, queue: Path, path: Path) -> None:
    """What one batch says, made and exploded: what the engine would read at best."""
    rows = source(session.read, queue, end=BATCH)
    said = emitted(rows, AnalysisSettings(), wanted_by(PLAN), None)
    said.write.parquet(str(path))


def source(reader: Any, queue: Path, **options: int) -> DataFrame:
    reader = reader.format(QueueSource.name()).option("directory", str(queue))
    for key, value in {"start": 0, "splits": 2, **options}.items():
        reader = reader.option(key, str(value))
    rows: DataFrame = reader.load()
    return rows


def run_stream(session: SparkSession, queue: Path, said: Path) -> Iterator[tuple[float, float]]:
    """Per batch: seconds of the stream's whole batch, and of the limit right after it."""
    limit = lowered(PLAN, attribute(wanted_by(PLAN)))
    done, times = threading.Event(), []
    ended = [time.monotonic()]

    def sink(batch: DataFrame, _number: int) -> None:
        streamed = METRICS.frame(batch).toArrow()
        if not streamed.num_rows:
            ended[0] = time.monotonic()
            return
        own = time.monotonic() - ended[0]
        started = time.monotonic()
        direct = limit.of(session.read.parquet(str(said))).toArrow()
        times.append((own, time.monotonic() - started))
        keys = [(name, "ascending") for name in streamed.schema.names]
        # Not as tables: what is read from Parquet may always be null.
        assert streamed.sort_by(keys).columns == direct.sort_by(keys).columns, "the two differ"
        ended[0] = time.monotonic()
        if len(times) == BATCHES:
            done.set()

    stream = source(session.readStream, queue, records_max=BATCH)
    query = stream.writeStream.foreachBatch(sink).start()
    while not done.wait(1.0):
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
    query.stop()
    yield from times


def batch_seconds(session: SparkSession, queue: Path, start: int, count: int) -> float:
    """Of a batch by itself: read, decoded, analysed and added up."""
    begun = time.monotonic()
    METRICS.frame(source(session.read, queue, start=start, end=start + count)).toArrow()
    return time.monotonic() - begun


def flat(session: SparkSession, scratch: Path, segments: list[bytes]) -> None:
    """Ratios of late batches to early ones, and of small ones to none."""
    queue = scratch / "long"
    fill_queue(queue, segments, LONG)
    spent = [batch_seconds(session, queue, start, BATCH) for start in range(0, LONG, BATCH)]
    early, late = (statistics.median(some) for some in (spent[WARM_UP:][:10], spent[-10:]))
    figure("pipeline_cost_after_5_million", late / early, "ratio to 100 k", at_most=FLAT_MAX)
    nothing, small = (
        statistics.median(batch_seconds(session, queue, 0, count) for _ in range(SMALL_TIMES))
        for count in (0, SMALL)
    )
    figure("pipeline_empty_batch", nothing, "s")
    figure("pipeline_batch_of_5_k", small / nothing, "ratio to an empty one", at_most=2.0)
    shutil.rmtree(queue)


def wide(session: SparkSession, scratch: Path) -> None:
    """Ratios of many endpoints to few, in turns. Until Java is warm it is slow with either, which
    hides the difference: so the warm-up is a long one."""
    limit = lowered(PLAN, attribute(wanted_by(PLAN)))
    queues = [scratch / str(number) for number in ENDPOINTS]
    said = [scratch / f"said-{number}" for number in ENDPOINTS]
    for queue, path, number in zip(queues, said, ENDPOINTS, strict=True):
        fill_queue(queue, called(number), BATCH)
        write_rows(session, queue, path)
    turns = [
        (
            *(batch_seconds(session, queue, 0, BATCH) for queue in queues),
            *(limit_seconds(session, limit, path) for path in said),
        )
        for _ in range(TURNS)
    ]
    few, many, limit_few, limit_many = (
        statistics.median(some) for some in zip(*turns[TURNS_WARM_UP:], strict=True)
    )
    figure("pipeline_10_endpoints", BATCH / few, "segments/s, local[2]")
    figure("pipeline_10000_endpoints", many / few, "ratio to 10", at_most=FLAT_MAX)
    figure("pipeline_10000_endpoints_limit", limit_many / limit_few, "ratio to 10, from Parquet")


def limit_seconds(session: SparkSession, limit: Lowered, said: Path) -> float:
    begun = time.monotonic()
    limit.of(session.read.parquet(str(said))).toArrow()
    return time.monotonic() - begun


def reported(session: SparkSession, scratch: Path) -> None:
    """What a second of JVMs costs beside the traces of its batch."""
    told = runtime.JVMMetricCollection(service="shop")
    metric = told.metrics.add(time=NOON_MS)
    metric.cpu.usagePercent = 40.0
    for heap in (True, False):
        metric.memory.add(isHeap=heap, used=10**8, max=10**9)
        metric.gc.add(phase=int(heap), count=1, time=5)
    for pool in range(6):
        metric.memoryPool.add(type=pool, used=10**7, max=10**8)
    metric.thread.liveCount, metric.clazz.loadedClassCount = 40, 9_000
    writer = Writer(QueueSettings(scratch / "jvms", 16 * MIB, 64 * MIB, consumers=("bench",)))
    writer.start()
    for number in range(JVMS):
        told.serviceInstance = f"shop-{number}"
        writer.append(Kind.JVM_METRICS, [told.SerializeToString()])
    writer.stop(10)
    metrics = Metrics(plan_of(shipped()).of(REPORTED), AnalysisSettings())
    spent = []
    for _ in range(SMALL_TIMES + WARM_UP):
        begun = time.monotonic()
        rows = source(session.read, scratch / "jvms", end=JVMS)
        metrics.of_reports(rows, [Kind.JVM_METRICS])
        spent.append(time.monotonic() - begun)
    figure("pipeline_reports_of_1000_jvms", statistics.median(spent[WARM_UP:]), "s")


def decoder_rates(segments: list[bytes]) -> dict[str, float]:
    array, rates = pa.array(segments, pa.binary()), {}
    for name in DECODERS:
        decoder, spent = DECODERS[name](SEGMENT), []
        for _ in range(3):
            started = time.process_time()
            decoder.decode_all(array)
            spent.append(time.process_time() - started)
        rates[name] = len(segments) / statistics.median(spent)
    return rates


def main() -> None:
    segments = payloads()
    for name, rate in decoder_rates(segments).items():
        figure(f"decode_{name}", rate, "segments/s of one core")
    with tempfile.TemporaryDirectory() as scratch:
        queue, said = Path(scratch) / "queue", Path(scratch) / "said"
        fill_queue(queue, segments)
        settings = SparkSettings("local[2]", "2g", 2, Path(scratch) / "spark")
        session = spark_session(settings)
        session.dataSource.register(QueueSource)
        write_rows(session, queue, said)
        times = list(run_stream(session, queue, said))[WARM_UP:]
        shutil.rmtree(queue)
        flat(session, Path(scratch), segments)
        wide(session, Path(scratch))
        reported(session, Path(scratch))
        session.stop()
    stream = BATCH / statistics.median(own for own, _ in times)
    limit = BATCH / statistics.median(direct for _, direct in times)
    figure("pipeline_stream", stream, "segments/s, local[2]")
    figure("pipeline_parquet_limit", limit, "segments/s, local[2]")
    figure("pipeline_ratio_to_limit", stream / limit, "ratio", at_least=0.4)


if __name__ == "__main__":
    main()

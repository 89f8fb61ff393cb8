"""Source → decode → analyse → aggregate, beside what the engine does with the same rows of Parquet.

The stream reads 100,000 segments a micro-batch from a queue on disk, makes of their spans all that
trace analysis says of services, instances, endpoints, relations and virtual services, and adds up
every shipped metric. The limit is the same aggregation over the same rows, already made and
exploded, from Parquet, in the same session, in turns with the stream. Medians of the batches after
the warm-up.
"""

from __future__ import annotations

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
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic import attribute, emitted, wanted_by
from skyfarer.oap.pipeline.lowering import deltas
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sources.decode import DECODERS
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.sources.shapes import SEGMENT
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.clock import HandClock
from skyfarer.testing.traffic import DemoTraffic
from skyfarer.wire.rpc import Kind

BATCH = 100_000
BATCHES = 10
WARM_UP = 4
DISTINCT = 20_000
NOON_MS = 1_794_744_000_000
PLAN = plan_of(shipped())


def payloads() -> list[bytes]:
    traffic = DemoTraffic(Random(1), HandClock(NOON_MS))
    found: list[bytes] = []
    while len(found) < DISTINCT:
        segments = traffic.trace(NOON_MS + len(found) * 10)
        found += [segment.SerializeToString() for segment in segments]
    return found[:DISTINCT]


def fill_queue(directory: Path, segments: list[bytes]) -> None:
    settings = QueueSettings(
        directory, segment_bytes=16 * MIB, capacity_bytes=4 * GIB, consumers=("bench",)
    )
    writer = Writer(settings)
    writer.start()
    for _ in range(BATCH * BATCHES // DISTINCT):
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
    metrics, read = Metrics(PLAN, AnalysisSettings()), attribute(wanted_by(PLAN))
    done, times = threading.Event(), []
    ended = [time.monotonic()]

    def sink(batch: DataFrame, _number: int) -> None:
        streamed = metrics.frame(batch).toArrow()
        if not streamed.num_rows:
            ended[0] = time.monotonic()
            return
        own = time.monotonic() - ended[0]
        started = time.monotonic()
        direct = deltas(session.read.parquet(str(said)), PLAN, read, None).toArrow()
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
        session.stop()
    stream = BATCH / statistics.median(own for own, _ in times)
    limit = BATCH / statistics.median(direct for _, direct in times)
    figure("pipeline_stream", stream, "segments/s, local[2]")
    figure("pipeline_parquet_limit", limit, "segments/s, local[2]")
    figure("pipeline_ratio_to_limit", stream / limit, "ratio", at_least=0.4)


if __name__ == "__main__":
    main()

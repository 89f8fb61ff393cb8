"""Source → decode → aggregate, beside what the engine does with the same rows from Parquet.

The stream reads 100,000 segments a micro-batch from a queue on disk and groups their entry spans.
The limit is the same grouping over the same spans, already exploded, from Parquet, in the same
session, in turns with the stream. Medians of the batches after the warm-up.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from figures import figure
from skyfarer.base.units import GIB, MIB
from skyfarer.oap.pipeline.analysis.entry import ENTRY, MINUTE_MS, NamingSettings, calls
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


def write_spans(path: Path, segments: list[bytes]) -> None:
    """The spans of one batch, exploded: what the engine would read at best."""
    decoder = DECODERS["ptars"](SEGMENT)
    rows = decoder.decode_all(pa.array(segments, pa.binary())).to_pylist()
    spans = [
        {
            "service": row["service"],
            "instance": row["serviceInstance"],
            "endpoint": span["operationName"],
            "startTime": span["startTime"],
            "endTime": span["endTime"],
            "spanType": span["spanType"],
            "isError": span["isError"],
            "skipAnalysis": span["skipAnalysis"],
            "refs": len(span["refs"]),
        }
        for row in rows
        for span in row["spans"]
    ]
    table = pa.Table.from_pylist(spans)
    half = BATCH // DISTINCT // 2
    for part in range(2):
        copies = half if part else BATCH // DISTINCT - half
        pq.write_table(pa.concat_tables([table] * copies), path / f"part-{part}.parquet")


def calls_of_spans(spans: DataFrame) -> DataFrame:
    """`analysis.entry.calls`, for spans that are exploded already."""
    entry = spans.where((F.col("spanType") == ENTRY) & ~F.col("skipAnalysis"))
    times = F.greatest(F.col("refs"), F.lit(1)).cast("long")
    return entry.groupBy(
        F.substring("service", 1, 70).alias("service"),
        F.substring("instance", 1, 70).alias("instance"),
        F.substring("endpoint", 1, 150).alias("endpoint"),
        F.floor(F.col("startTime") / MINUTE_MS).alias("minute"),
    ).agg(
        F.sum(times).alias("calls"),
        F.sum((F.col("endTime") - F.col("startTime")) * times).alias("latency_sum"),
        F.sum(F.when(F.col("isError"), times).otherwise(0)).alias("errors"),
    )


def run_stream(session: SparkSession, queue: Path, spans: Path) -> Iterator[tuple[float, float]]:
    """Per batch: seconds of the stream's whole batch, and of the limit right after it."""
    session.dataSource.register(QueueSource)
    done, times = threading.Event(), []
    ended = [time.monotonic()]

    def sink(batch: DataFrame, _number: int) -> None:
        streamed = calls(batch, NamingSettings()).toArrow()
        if not streamed.num_rows:
            ended[0] = time.monotonic()
            return
        own = time.monotonic() - ended[0]
        started = time.monotonic()
        direct = calls_of_spans(session.read.parquet(str(spans))).toArrow()
        times.append((own, time.monotonic() - started))
        keys = [(name, "ascending") for name in ("service", "instance", "endpoint", "minute")]
        same = streamed.sort_by(keys).to_pylist() == direct.sort_by(keys).to_pylist()
        assert same, "the two aggregations differ"
        ended[0] = time.monotonic()
        if len(times) == BATCHES:
            done.set()

    stream = session.readStream.format(QueueSource.name())
    options = {"directory": queue, "start": 0, "records_max": BATCH, "splits": 2}
    for key, value in options.items():
        stream = stream.option(key, str(value))
    query = stream.load().writeStream.foreachBatch(sink).start()
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
        queue, spans = Path(scratch) / "queue", Path(scratch) / "spans"
        spans.mkdir()
        fill_queue(queue, segments)
        write_spans(spans, segments)
        settings = SparkSettings("local[2]", "2g", 2, Path(scratch) / "spark")
        session = spark_session(settings)
        times = list(run_stream(session, queue, spans))[WARM_UP:]
        session.stop()
    stream = BATCH / statistics.median(own for own, _ in times)
    limit = BATCH / statistics.median(direct for _, direct in times)
    figure("pipeline_stream", stream, "segments/s, local[2]")
    figure("pipeline_parquet_limit", limit, "segments/s, local[2]")
    figure("pipeline_ratio_to_limit", stream / limit, "ratio", at_least=0.3)


if __name__ == "__main__":
    main()

"""Segments as long as may be, more of them than the heap has room for at once."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from oap.pipeline.bench import METRICS
from skyfarer.base.units import MIB
from skyfarer.oap.pipeline.sink import records_query
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.told import unpacked
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.wire.rpc import Kind

SPANS, SEGMENTS = 9_900, 450


def long(number: int) -> bytes:
    """Spans without anything: two bytes each, and forty times as many when they are decoded."""
    identifier = b"long-%04d" % number
    return b"\x12" + bytes([len(identifier)]) + identifier + b"\x22\x04shop" + b"\x1a\x00" * SPANS


def test_batch_that_finds_no_room_in_the_heap_is_analysed(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer = Writer(QueueSettings(tmp_path, 4 * MIB, 64 * MIB, record_bytes_max=MIB))
    writer.start()
    for first in range(0, SEGMENTS, 100):
        writer.append(Kind.SEGMENT, [long(number) for number in range(first, first + 100)])
    writer.stop(1)
    options = {"directory": tmp_path, "start": 0, "end": SEGMENTS, "splits": 1}
    source = spark.read.format(QueueSource.name())
    rows = source.options(**{key: str(value) for key, value in options.items()}).load().persist()
    try:
        assert unpacked(records_query().of(rows).toArrow()["told"]).num_rows == SEGMENTS
        (counted,) = METRICS.of(rows)["Service"].rows["count"].to_pylist()[:1]
    finally:
        rows.unpersist()
    assert counted

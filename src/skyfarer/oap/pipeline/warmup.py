"""A few segments of our own through the whole analysis, before the node says that it is ready.

The first batch after a start is slow: the JVM compiles the plan, workers are started and import
their libraries. So that no agent's data waits for that, and a node that cannot analyse says so at
its start, a small queue in the scratch directory goes the same way first.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import MIB
from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.sink import records_query
from skyfarer.oap.pipeline.sources.queue import SPLIT_RECORDS_MIN, QueueSource
from skyfarer.oap.pipeline.told import unpacked
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.wire.messages import SegmentObject, SpanObject
from skyfarer.wire.rpc import Kind

SEGMENT_BYTES = 2 * MIB
SERVICE = "warm-up"


def warm_up(session: SparkSession, scratch: Path, splits: int, metrics: Metrics) -> None:
    """PermanentError where what is known comes out otherwise."""
    directory = scratch / "warm-up"
    shutil.rmtree(directory, ignore_errors=True)
    count = splits * SPLIT_RECORDS_MIN
    _fill(directory, count)
    source = session.read.format(QueueSource.name()).option("directory", str(directory))
    rows = source.option("start", 0).option("end", count).option("splits", splits).load().persist()
    try:
        told = unpacked(records_query().of(rows).toArrow()["told"]).num_rows
        counted = metrics.of(rows)
    finally:
        rows.unpersist()
    if told != count:
        raise PermanentError(f"{told} of {count} known segments were read: Spark cannot be trusted")
    if (found := _services(counted)) != [SERVICE]:
        raise PermanentError(f"known segments are of {SERVICE}, and were analysed to be of {found}")
    shutil.rmtree(directory)


def _services(counted: dict[str, Deltas]) -> list[str]:
    if "Service" not in counted:
        return []
    names: list[str] = counted["Service"].rows["service"].to_pylist()
    return names


def _fill(directory: Path, count: int) -> None:
    span = SpanObject(spanId=0, parentSpanId=-1, operationName="/", startTime=1, endTime=2)
    known = SegmentObject(traceSegmentId="known", service=SERVICE, spans=[span])
    settings = QueueSettings(
        directory, SEGMENT_BYTES, capacity_bytes=4 * SEGMENT_BYTES, record_bytes_max=MIB
    )
    queue = Writer(settings)
    queue.start()
    for _ in range(count // 1000):
        queue.append(Kind.SEGMENT, [known.SerializeToString()] * 1000)
    queue.stop(0)

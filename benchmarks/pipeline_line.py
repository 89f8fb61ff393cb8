"""The pipeline from a queue on disk to the door of storage, with nothing behind the door.

All that an OAP does to a batch is done here, by its own sink and with the settings that are
shipped: records told to the driver, resends looked for, spans analysed and added up, results folded
and put beside the bytes of their segments. `Counter` then takes them and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skyfarer.base.units import MIB
from skyfarer.oap.boot.definitions import plan_from
from skyfarer.oap.boot.providers.analysis import AnalysisProvider
from skyfarer.oap.boot.settings import AnalyzerConfig, CoreConfig
from skyfarer.oap.core.entities import TRACED
from skyfarer.oap.core.expiry import Kept, Retention
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.pipeline.analysis.traffic import attribute, emitted, wanted_by
from skyfarer.oap.pipeline.lowering import Lowered, lowered
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.sink import BatchSink
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.sources.rows import Reading
from skyfarer.oap.pipeline.told import Telling
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.traces import segment
from skyfarer.testing.traffic import ADDRESSES, INSTANCES, DemoTraffic
from skyfarer.wire.messages import InstancePingPkg, SegmentObject
from skyfarer.wire.rpc import Kind

NOON_MS: Final = 1_794_744_000_000
DISTINCT: Final = 20_000
"""So many segments differ in more than their ids."""
CONSUMER: Final = "bench"
BROKEN: Final = b"\x0a" + b"\xff" * 9 + b"\x01"
"""A record that makes the native decoder panic: no other costs more."""
CONFIG: Final = AnalyzerConfig()
SETTINGS: Final = AnalysisProvider(CONFIG).analysis(CoreConfig(), Retention(7, 7))
PLAN: Final = plan_from(CONFIG.oalActiveFiles, ())
READING: Final = Reading(telling=Telling.by(SETTINGS)).written()
TRACES: Final = PLAN.of(TRACED)
METRICS: Final = Metrics(PLAN, SETTINGS)
ALIASES: Final = pa.table(
    {
        "address": list(ADDRESSES.values()),
        "alias_service": list(ADDRESSES),
        "alias_instance": [INSTANCES[service][0] for service in ADDRESSES],
    }
)


class Counter:
    """A storage that knows nothing and keeps nothing but how far it is."""

    def __init__(self) -> None:
        self.next = 0
        self.segments = 0
        self.last: Analysed | None = None

    def applied(self, partition: str) -> int:
        return self.next

    def known_segments(self, ids: pa.Array, minutes: pa.Array) -> Iterable[str]:
        return ()

    def apply(self, batch: Analysed) -> None:
        self.next, self.last = batch.end, batch
        self.segments += batch.segments.num_rows

    def expired(self) -> Mapping[Kept, int]:
        return {}

    def aliases(self) -> pa.Table:
        return ALIASES

    def inventories(self, scope: InventoryScope, row_ids: Sequence[str]) -> Mapping[str, Inventory]:
        return {}

    def inventories_by_id(
        self, scope: InventoryScope, sequences: Sequence[int]
    ) -> Mapping[int, Inventory]:
        return {}


class Line:
    """A queue, the sink, and the counter at its end."""

    def __init__(self, session: SparkSession, queue: Path) -> None:
        self._session, self._directory = session, queue
        self.counter = Counter()
        self._reader, self._consumer = Reader(queue), Consumer(queue, CONSUMER)
        self.sink = BatchSink(
            *(self.counter, self.counter, self._reader, self._consumer, METRICS, SETTINGS),
            *(Registry(), HandClock(NOON_MS + 3_600_000), lambda: None),
        )

    def __enter__(self) -> Line:
        self._reader.start()
        self._consumer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.sink.close()
        self._consumer.stop()
        self._reader.stop()

    def stream(self, records_max: int) -> DataFrame:
        return source(self._session.readStream, self._directory, records_max=records_max)

    def take(self, start: int, count: int) -> None:
        """A batch by itself."""
        self.counter.next = start
        rows = source(self._session.read, self._directory, start=start, end=start + count)
        self.sink(rows, 0)


def source(reader: Any, queue: Path, **options: int) -> DataFrame:
    reader = reader.format(QueueSource.name()).option("directory", str(queue))
    shipped = {"start": 0, "splits": 2, "reading": READING}
    for key, value in {**shipped, **options}.items():
        reader = reader.option(key, str(value))
    rows: DataFrame = reader.load()
    return rows


def limit() -> Lowered:
    """The same output aggregation."""
    return lowered(TRACES, attribute(wanted_by(TRACES)), SETTINGS.apdex_ms)


def write_rows(session: SparkSession, queue: Path, count: int, path: Path) -> None:
    """What so many segments say, made and exploded: what the engine would read at best."""
    rows = source(session.read, queue, end=count)
    known = session.createDataFrame(ALIASES)
    emitted(rows, SETTINGS, wanted_by(TRACES), known).write.parquet(str(path))


def realistic() -> list[SegmentObject]:
    traffic, found = DemoTraffic(Random(1), HandClock(NOON_MS)), list[SegmentObject]()
    while len(found) < DISTINCT:
        found += traffic.trace(NOON_MS + len(found) * 10)
    return found[:DISTINCT]


def called(endpoints: int) -> list[SegmentObject]:
    """Segments of one span each, of so many endpoints in turn."""
    return [
        segment("shop", "shop-1", f"/{n % endpoints}", NOON_MS + n, n % 700)
        for n in range(max(DISTINCT, endpoints))
    ]


def fill(
    directory: Path, segments: Sequence[SegmentObject], count: int, broken_each: int | None = None
) -> None:
    """So many in turn, each with an id of its own: a resend would be left out. The queue is as
    large as it is shipped, or as they need: each of its files is looked at in every batch. The
    first of each `broken_each`, a whole number of hundreds, is broken."""
    cut = [_cut(one) for one in segments]
    needed = 2 * count * sum(len(one) for pair in cut for one in pair) // len(cut)
    capacity = max(512 * MIB, needed)
    settings = QueueSettings(directory, 16 * MIB, capacity, consumers=(CONSUMER,))
    writer = Writer(settings)
    writer.start()
    for first in range(0, count, 100):
        numbers = range(first, min(first + 100, count))
        some = ((cut[n % len(cut)], b"%016d" % n) for n in numbers)
        payloads = [before + name + after for (before, after), name in some]
        if broken_each is not None and first % broken_each == 0:
            payloads[0] = BROKEN
        writer.append(Kind.SEGMENT, payloads)
    writer.stop(10)


def fill_with_pings(directory: Path, count: int) -> None:
    """Records that say nothing but that somebody is there."""
    ping = InstancePingPkg(service="shop", serviceInstance="shop-1").SerializeToString()
    writer = Writer(QueueSettings(directory, 16 * MIB, 64 * MIB, consumers=(CONSUMER,)))
    writer.start()
    writer.append(Kind.INSTANCE_PING, [ping] * count)
    writer.stop(10)


def _cut(one: SegmentObject) -> tuple[bytes, bytes]:
    """Its bytes before and after the id, which is one of 16 characters."""
    name = b"?" * 16
    one.traceSegmentId = name.decode()
    before, _, after = one.SerializeToString().partition(name)
    return before, after

"""A queue full of work: every sort of record that leaves something in the tables, late and wrong
ones among them, cut into batches of BATCH."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from google.protobuf.message import Message

from oap.pipeline.bench import NOON
from skyfarer.base.units import MIB
from skyfarer.oap.pipeline.times import DAY_MS
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.traces import Exit, cache, caller, database, produce, segment
from skyfarer.wire.messages import (
    InstancePingPkg,
    KeyStringValuePair,
    SegmentObject,
    event,
    log,
    runtime,
)
from skyfarer.wire.messages import inventory as messages
from skyfarer.wire.rpc import Kind

NOW: Final = NOON + 3_600_000
BATCH: Final = 27
BATCHES: Final = 5

Work: TypeAlias = Iterable[tuple[int, bytes]]


def pair(number: int, start_ms: int) -> tuple[SegmentObject, SegmentObject]:
    """A call of web's and its answer, by which the address turns out to be a cart's."""
    web = segment(
        *("web", f"web-{number % 2}", f"GET:/{number % 3}", start_ms, 40 + number),
        segment_id=f"web-{number}",
        trace_id=f"trace-{number}",
        exits=[
            Exit("POST:/cart", f"cart-{number % 2}:80", 1, 30, error=number % 5 == 0),
            database("db:5432", "SELECT 1", 2, 9 + number),
            cache("redis:6379", "GET", "key", 3, 2),
            produce("mq:9092", "orders", 4, 3),
        ],
    )
    cart = segment(
        *("cart", f"cart-{number % 2}", "POST:/cart", start_ms + 2, 25, number % 5 == 0),
        segment_id=f"cart-{number}",
        trace_id=f"trace-{number}",
        callers=[caller(web, 1)],
    )
    return web, cart


def pairs(numbers: Iterable[int], first_ms: int = NOON) -> list[tuple[int, bytes]]:
    """Some of each minute, and each fifth of a day earlier."""
    starts = ((n, first_ms + n * 7_000 - DAY_MS * (n % 5 == 4)) for n in numbers)
    return [told(Kind.SEGMENT, one) for n, start_ms in starts for one in pair(n, start_ms)]


def told(kind: Kind, message: Message) -> tuple[int, bytes]:
    return kind, bytes(message.SerializeToString())


def work() -> list[tuple[int, bytes]]:
    return [record for batch in range(BATCHES) for record in _batch(batch)]


def _batch(batch: int) -> Iterator[tuple[int, bytes]]:
    """Eight calls and eleven others: of each life in a node one, and a resend."""
    calls = pairs(range(batch * 8, batch * 8 + 8))
    wrong_times = (NOW + 3_600_000, NOW - 8 * DAY_MS)
    clocks = [pair(1_000 + batch * 2 + n, at)[0] for n, at in enumerate(wrong_times)]
    yield from calls
    yield from (told(Kind.SEGMENT, one) for one in clocks)
    yield told(Kind.INSTANCE_PING, InstancePingPkg(service="idle", serviceInstance=f"i-{batch}"))
    name = messages.InventorySource(scope=1, name=f"old-{batch}", registerTime=NOON)
    yield told(Kind.INVENTORY, name)
    jvm = runtime.JVMMetricCollection(service="web", serviceInstance="web-0")
    jvm.metrics.add(time=NOON + batch * 1_000).cpu.usagePercent = 40.0 + batch
    yield told(Kind.JVM_METRICS, jvm)
    yield Kind.PPROF, b"a profile %d" % batch
    tags = log.LogTags(data=[KeyStringValuePair(key="level", value="WARN")])
    line = log.LogData(timestamp=NOON + batch, service="web", serviceInstance="web-0", tags=tags)
    yield told(Kind.LOG, line)
    started = event.Event(uuid=f"{batch // 2}", name="Start", layer="GENERAL", startTime=NOON)
    started.endTime = batch % 2 and NOON + 1_000
    yield told(Kind.EVENT, started)
    yield Kind.SEGMENT, b"\xff no segment %d" % batch
    yield 777, b"of no kind"
    yield pairs([max(0, batch * 8 - 5)])[0]


def laced(good: list[tuple[int, bytes]], bad: list[tuple[int, bytes]]) -> Work:
    """With the bad records far apart."""
    distance = len(good) // len(bad)
    for number, record in enumerate(good):
        if number % distance == 0 and number // distance < len(bad):
            yield bad[number // distance]
        yield record


def fill(directory: Path, records: Work) -> None:
    settings = QueueSettings(
        *(directory / "queue", MIB, 8 * MIB), record_bytes_max=MIB // 4, consumers=("analysis",)
    )
    writer = Writer(settings)
    writer.start()
    for kind, payload in records:
        writer.append(kind, [payload])
    writer.stop(0)

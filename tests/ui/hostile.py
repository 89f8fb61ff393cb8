"""A town whose every text is hostile: names, tags, logs, operations, ids."""

from __future__ import annotations

from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.testing import traces
from skyfarer.wire.messages import KeyStringValuePair, Log, SegmentObject, log
from ui.town import Town

AHEAD_MINUTES = 20
MEGABYTE = 1_000_000
HURTS = (
    "<script>window.hurt=1</script>",
    "<img src=x onerror=window.hurt=1>",
    "</textarea></script></style>-->",
    "\"'`${7*7}{{7*7}}{b}",
    "javascript:window.hurt=1",
)
UNSEEN = "\x00\u202e"


def hostile(kind: str) -> str:
    """As short as the OAP makes the name of a service."""
    return f"{kind} {HURTS[0]}{HURTS[3]}{UNSEEN}"


def spelt(kind: str) -> str:
    """The same as a reader sees it."""
    return hostile(kind).replace("\x00", "␀").replace("\u202e", "<U+202E>")


SERVICE, INSTANCE, CALLED = hostile("service"), hostile("instance"), hostile("called")
ENDPOINT, PEER, TRACE = hostile("endpoint"), hostile("peer"), hostile("trace")
HURT = " ".join(HURTS)
LONG = f"long {HURT} ".ljust(MEGABYTE, "x")


def fill(town: Town) -> None:
    """Into the future too, so that a slow run never reaches the end."""
    now_ms = SystemClock().now_ms()
    town.put(
        [one for minute in range(-2, AHEAD_MINUTES) for one in _trace(now_ms + minute * MINUTE_MS)]
    )
    whole = _trace(now_ms - MINUTE_MS, TRACE)
    root = whole[0].spans[-1]
    pairs = [
        KeyStringValuePair(key=hostile("key"), value=HURT + UNSEEN),
        KeyStringValuePair(key="long", value=LONG),
    ]
    root.tags.extend(pairs)
    root.logs.append(Log(time=root.startTime, data=pairs))
    town.put(whole)
    town.put_registered([Inventory(InventoryScope.SERVICE, hostile("registered"))])
    town.put_logs([_log(now_ms - MINUTE_MS, text) for text in (HURT, LONG)])


def _trace(at_ms: int, trace_id: str = "") -> list[SegmentObject]:
    """One hostile service calls another, which fails."""
    exit_span = traces.Exit(hostile("exit"), PEER, 1, 20)
    front = traces.segment(
        SERVICE, INSTANCE, ENDPOINT, at_ms, 40, exits=[exit_span], trace_id=trace_id
    )
    back = traces.segment(
        CALLED,
        hostile("instance called"),
        hostile("endpoint called"),
        at_ms + 5,
        10,
        True,
        trace_id=front.traceId,
        callers=[traces.caller(front, 1)],
    )
    return [front, back]


def _log(at_ms: int, text: str) -> log.LogData:
    tags = [{"key": "level", "value": HURTS[0]}, {"key": hostile("key"), "value": HURTS[1]}]
    return log.LogData(
        timestamp=at_ms,
        service=SERVICE,
        serviceInstance=INSTANCE,
        endpoint=ENDPOINT,
        body=log.LogDataBody(text=log.TextLog(text=text)),
        traceContext=log.TraceContext(traceId=TRACE),
        tags=log.LogTags(data=tags),
    )

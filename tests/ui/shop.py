"""Some minutes of the demo's shop, with logs: what the pages show in tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.testing.browser import Browser
from skyfarer.testing.traffic import DemoTraffic
from skyfarer.wire.messages import SegmentObject, log
from ui.town import Town

MINUTES = 12
AHEAD_MINUTES = 20
TRACES_A_MINUTE = 3
FILLED = {
    "/": ".instances .small-row",
    "/map": ".call-row",
    "/traces": ".trace-row",
    "/trace": ".log-row",
    "/logs": ".log-row",
    "/pipeline": ".expiry .small-row",
    "/registry": ".registry-name",
}
"""What is there last of all, once a page shows what it has."""


@dataclass(frozen=True)
class ShopPages:
    """The pages of a shop, at `url`; the trace has failed, and has logs, shortly before it was
    filled."""

    url: str
    trace_id: str
    filled_ms: int

    def open(self, browser: Browser, path: str) -> None:
        """Returns when the page shows the shop: a page that is not known here, the time."""
        queries = {"/": "?service=order", "/trace": f"?id={self.trace_id}"}
        browser.open(f"{self.url}{path.lstrip('/')}{queries.get(path, '')}")
        browser.wait_for("the time", lambda: ":" in browser.text(".time"))
        browser.wait_for(f"all of {path}", lambda: browser.text(FILLED.get(path, ".time")))


def fill(town: Town) -> str:
    """Into the future too, so that a slow run never reaches the end. The id of a failed trace that
    has logs."""
    traffic, now_ms = DemoTraffic(Random(3), SystemClock()), SystemClock().now_ms()
    segments = list[SegmentObject]()
    for minute in range(-MINUTES, AHEAD_MINUTES):
        for number in range(TRACES_A_MINUTE):
            segments += traffic.trace(now_ms + minute * MINUTE_MS - number * 1_000)
    broken = _failed(traffic, now_ms - MINUTE_MS)
    town.put([*segments, *broken])
    town.put_logs(_logs(next(one for one in broken if one.service == "order")))
    town.put_registered([Inventory(InventoryScope.SERVICE, "old-shop", node_type=3)])
    return broken[0].traceId


def _failed(traffic: DemoTraffic, at_ms: int) -> list[SegmentObject]:
    """A checkout that fails in three services; one of forty traces is one."""
    while True:
        trace = traffic.trace(at_ms)
        if len(trace) == 3 and all(one.spans[-1].isError for one in trace):
            return trace


def _logs(failed: SegmentObject) -> Sequence[log.LogData]:
    return [
        log.LogData(
            timestamp=failed.spans[-1].startTime + number,
            service=failed.service,
            serviceInstance=failed.serviceInstance,
            endpoint=failed.spans[-1].operationName,
            body=log.LogDataBody(text=log.TextLog(text=f"{level.lower()} of the order\nin lines")),
            traceContext=log.TraceContext(traceId=failed.traceId),
            tags=log.LogTags(data=[{"key": "level", "value": level}]),
        )
        for number, level in enumerate(("ERROR", "WARN", "INFO", ""))
    ]

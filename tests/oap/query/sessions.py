"""What the clients of a session find stored: a shop that calls a cart, seen from both ends, with a
trace, a log and a slow statement. All of it lies within half an hour of the server's clock."""

from __future__ import annotations

from datetime import date, datetime, tzinfo
from typing import Any, Final

from contracts import event_contract
from contracts.metrics_contract import called
from contracts.storage_contract import batch, deltas_of
from golden.mqe.scripts import script
from golden.mqe.storing import store
from skyfarer.oap.core import ids
from skyfarer.oap.oal.plan import Plan
from skyfarer.testing import traces
from skyfarer.wire.messages import log

LOADED: Final = """
load Service page-shop
  0800 x6 latency=100
  0810 x2 latency=300 status=false
load Service page-cart
  0805 x4 latency=50
load ServiceInstance page-shop / shop-1
  0800 x6 latency=100
load ServiceInstance page-shop / shop-2
  0810 x2 latency=300
load Endpoint page-shop / /pay
  0800 x8 latency=100
load ServiceRelation page-shop -> page-cart
  0805 x4 latency=40
load DATABASE page-db
  0801 latency=900 statement='select 1' trace=t-1
"""
SHOP: Final = ids.service_id("page-shop")
CART: Final = ids.service_id("page-cart")
DATABASE: Final = "page-db"
TRACE: Final = "page-t"
_FROM: Final = {"from_service": "page-shop", "from_instance": "shop-1", "from_endpoint": "/pay"}
_TO: Final = {"service": "page-cart", "instance": "cart-1", "endpoint": "/add"}


def fill(shelf: Any, plan: Plan, zone: tzinfo) -> None:
    """`shelf` is a query server on a storage of its own."""
    store(shelf.storage, plan, script("session.txt", LOADED, date(2026, 11, 15)), zone)
    eight_ms = int(datetime(2026, 11, 15, 8, 0, tzinfo=zone).timestamp() * 1000)
    seen = [
        called(eight_ms // 60_000 + 5, **_FROM, **_TO, component=1, detect_point=point)
        for point in ("CLIENT", "SERVER")
    ]
    relations = ("ServiceRelation", "ServiceInstanceRelation", "EndpointRelation")
    first = shelf.storage.applied("queue-a")
    told = {source: deltas_of(seen, {}) for source in relations}
    shelf.storage.apply(batch(first, first + 1, metrics=told))
    of = {"segment_id": "page-s", "trace_id": TRACE, "tags": {"http.method": "GET"}}
    shelf.put(traces.segment("page-shop", "shop-1", "/pay", eight_ms, 120, True, **of))
    shelf.put_logs(_log(eight_ms))
    shelf.put_events(event_contract.event("page-event", eight_ms, service="page-shop"))


def _log(at_ms: int) -> log.LogData:
    return log.LogData(
        service="page-shop",
        serviceInstance="shop-1",
        timestamp=at_ms,
        body=log.LogDataBody(text=log.TextLog(text="no money")),
        traceContext=log.TraceContext(traceId=TRACE, traceSegmentId="page-s"),
        tags=log.LogTags(data=[{"key": "level", "value": "ERROR"}]),
    )

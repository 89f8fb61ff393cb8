"""What the checks of operations have to ask and to compare with: a shop under the real agent, and
what was sent beside it of what no agent here reports."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import grpc
import httpx

from e2e.reading import seen
from e2e.shops import Shop
from golden.documents import documents
from skyfarer.oap.core import ids
from skyfarer.testing.programs import Oap, eventually
from skyfarer.testing.traces import POSTGRESQL, Exit, segment
from skyfarer.wire.messages import profile

SHOP: Final = "asked-shop"
INSTANCE: Final = f"{SHOP}-1"
SHOP_ID: Final = ids.service_id(SHOP)
INSTANCE_ID: Final = ids.instance_id(SHOP_ID, INSTANCE)
DEPOT: Final = "asked-depot"
"""Under the agent too: what the shop sends away is asked for there."""
DEPOT_ID: Final = ids.service_id(DEPOT)
DEPOT_INSTANCE: Final = f"{DEPOT}-1"
TILL, DATABASE, WEB = "asked-till", "asked-db:5432", "asked-web"
STATEMENT: Final = "select * from asked"
VISITS: Final = {"/catalogue": 6, "/checkout": 2, "/basket": 3, "/parcel": 2}
SLOW: Final = "/stocktaking"
EVENT: Final = "asked-event"
VISIBLE_WITHIN_S: Final = 240.0
Answer = Any


@dataclass
class Stage:
    """Everything the checks may touch."""

    oap: Oap
    now_ms: int
    task: str = ""
    calls: dict[str, int] = field(default_factory=dict)

    @property
    def minutes(self) -> dict[str, str]:
        """The same for every question, so that their answers have the same points."""
        return self._around("%Y-%m-%d %H%M", "MINUTE")

    @property
    def seconds(self) -> dict[str, str]:
        return self._around("%Y-%m-%d %H%M%S", "SECOND")

    def _around(self, shape: str, step: str) -> dict[str, str]:
        now = datetime.fromtimestamp(self.now_ms / 1000, UTC)
        start, end = now - timedelta(minutes=1), now + timedelta(minutes=29)
        return {"start": start.strftime(shape), "end": end.strftime(shape), "step": step}

    @property
    def total(self) -> int:
        return sum(self.calls.values())

    def ask(self, operation: str, **variables: Any) -> Answer:
        """What the golden document of that operation is answered with."""
        answer = self.post(operation, **variables)
        assert "errors" not in answer, answer["errors"]
        return answer["data"][operation]

    def post(self, operation: str, **variables: Any) -> dict[str, Any]:
        """Errors and all."""
        body = {"query": documents()[operation].text, "variables": variables}
        request = urllib.request.Request(
            f"{self.oap.url}/graphql",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            assert response.status == 200
            answer: dict[str, Any] = json.load(response)
        return answer


Check = Callable[[Stage], None]
Checks = Mapping[str, Check]


def endpoint_id(page: str) -> str:
    return ids.endpoint_id(SHOP_ID, page)


def set_up(stage: Stage, shop: Shop) -> None:
    """Sells, profiles, and tells what only browsers, databases and operators would."""
    shop.sell(VISITS)
    stage.calls = {**VISITS, "/stock": VISITS["/basket"]}
    _profile(stage, shop)
    _tell_beside(stage)
    eventually(lambda: _arrived(stage), VISIBLE_WITHIN_S, "all that was sent visible")


def _profile(stage: Stage, shop: Shop) -> None:
    """The agent asks for tasks every second; what it samples is told soon after."""
    request = {
        "serviceId": SHOP_ID,
        "endpointName": SLOW,
        "duration": 5,
        "minDurationThreshold": 0,
        "dumpPeriod": 10,
        "maxSamplingCount": 9,
    }
    created = stage.ask("createProfileTask", creationRequest=request)
    assert created["errorReason"] is None
    stage.task = created["id"]
    stage.calls[SLOW] = 0

    def sampled() -> bool:
        assert shop.visit(SLOW) == 200
        stage.calls[SLOW] += 1
        return bool(stage.ask("getProfileTaskSegments", taskID=stage.task))

    eventually(sampled, VISIBLE_WITHIN_S, "a request profiled")


def _tell_beside(stage: Stage) -> None:
    base, now_ms = f"http://127.0.0.1:{stage.oap.rest_port}", stage.now_ms
    page = {"service": WEB, "serviceVersion": "v1", "pagePath": "/cart", "time": now_ms}
    source = {"service": SHOP, "serviceInstance": INSTANCE}
    event = {"uuid": EVENT, "source": source, "name": "Restart", "layer": "GENERAL"}
    told = {
        "/browser/errorLog": page | {"category": "js", "message": "asked for nothing"},
        "/v3/events": [event | {"type": "Normal", "startTime": now_ms, "message": "again"}],
    }
    for path, body in told.items():
        httpx.post(base + path, json=body, trust_env=False, timeout=60).raise_for_status()
    exits = [
        Exit(
            "Postgres/query",
            DATABASE,
            5,
            900,
            "Database",
            POSTGRESQL,
            False,
            {"db.type": "sql", "db.statement": STATEMENT},
        )
    ]
    sold = segment(TILL, f"{TILL}-1", "/pay", now_ms, 950, exits=exits, trace_id="asked-trace")
    done = profile.ProfileTaskFinishReport(
        service=SHOP, serviceInstance=INSTANCE, taskId=stage.task
    )
    with grpc.insecure_channel(f"127.0.0.1:{stage.oap.grpc_port}") as channel:
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        collect(iter([sold.SerializeToString()]), timeout=120)
        report = channel.unary_unary("/skywalking.v3.ProfileTask/reportTaskFinish")
        report(done.SerializeToString(), timeout=120)


def _arrived(stage: Stage) -> bool:
    shop, till = seen(stage.oap, SHOP), seen(stage.oap, TILL)
    browser = {"queryDuration": stage.minutes, "paging": {"pageNum": 1, "pageSize": 9}}
    browser["serviceId"] = ids.service_id(WEB)
    logs = {"queryDuration": stage.seconds, "paging": {"pageNum": 1, "pageSize": 9}}
    return (
        shop.get("endpoints") == stage.calls
        and till.get("calls") == 1
        and seen(stage.oap, DEPOT).get("endpoints") == {"/depot": VISITS["/parcel"]}
        and len(stage.ask("queryBrowserErrorLogs", condition=browser)["logs"]) == 1
        and len(stage.ask("queryLogs", condition=logs | {"serviceId": SHOP_ID})["logs"]) == 6
        and stage.ask("getProfileTaskLogs", taskID=stage.task) != []
        and stage.ask("queryEvents", condition={"uuid": EVENT})["events"] != []
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000

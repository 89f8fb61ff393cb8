"""`swctl`, command after command, as it asks: each begins with the server's time and version, and
then has one question, through the HTTP door on stored data."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, Final

import httpx
import pytest

from golden.documents import documents
from oap.query.sessions import CART, DATABASE, SHOP, TRACE, fill
from skyfarer.oap.core import ids

Answer = Any
WHO: Final = {"scope": "Service", "serviceName": "page-shop", "normal": True}
CALLS: Final = {"name": "service_cpm", "entity": WHO}


class Swctl:
    """One command is one process: nothing is remembered from one to the next."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self.minutes: dict[str, str] = {}
        self.seconds: dict[str, str] = {}

    def run(self, operation: str, **variables: Any) -> Answer:
        """`minutes` and `seconds` in the place of a value are its half hour."""
        self._greet()
        times = {"minutes": self.minutes, "seconds": self.seconds}
        return self._post(operation, **_filled(variables, times))

    def _greet(self) -> None:
        told = self._post("getTimeInfo")
        sign, hours, minutes = re.match(r"([+-])(\d\d)(\d\d)", told["timezone"]).groups()  # type: ignore[union-attr]
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        zone = timezone(offset if sign == "+" else -offset)
        end = datetime.fromtimestamp(told["currentTimestamp"] / 1000, zone)
        for step, shape in (("MINUTE", "%Y-%m-%d %H%M"), ("SECOND", "%Y-%m-%d %H%M%S")):
            start = end - timedelta(minutes=30)
            times = {"start": start.strftime(shape), "end": end.strftime(shape), "step": step}
            setattr(self, f"{step.lower()}s", times)
        major, minor = re.match(r"^(\d+)\.(\d+)", self._post("version")).groups()  # type: ignore[union-attr]
        assert (int(major), int(minor)) >= (10, 2), "it asks for metadata v2, endpoints by time"

    def _post(self, operation: str, **variables: Any) -> Answer:
        assert "swctl" in documents()[operation].askers
        body = {"query": documents()[operation].text, "variables": variables}
        answer = self._http.post("/graphql", json=body).json()
        assert "errors" not in answer, answer["errors"]
        return answer["data"][operation]


def _filled(value: Any, times: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, times) for key, one in value.items()}
    return times.get(value, value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def swctl(shelf: Any, plan: Any, zone: Any) -> Swctl:
    fill(shelf, plan, zone)
    return Swctl(shelf.http)


def names(found: list[Answer]) -> set[str]:
    return {one.get("name", one.get("value")) for one in found}


def told(found: Answer) -> list[int]:
    return [one["value"] for one in found["values"]["values"] if one["value"]]


def ends(found: Answer) -> list[tuple[str, str]]:
    shown = {one["id"]: one["name"] for one in found["nodes"]}
    return [(shown[one["source"]], shown[one["target"]]) for one in found["calls"]]


PAGE: Final = {"pageNum": 1, "pageSize": 15}
ORDERED: Final = {"traceState": "ALL", "queryOrder": "BY_DURATION", "paging": PAGE}
COMMANDS: Final[dict[str, tuple[str, dict[str, Any], Callable[[Answer], object], object]]] = {
    "health": ("checkHealth", {}, lambda found: found["score"], 0),
    "layer ls": ("listLayers", {}, lambda found: "GENERAL" in found, True),
    "service ls": (
        "getAllServices",
        {"duration": "minutes"},
        lambda found: {"page-shop", "page-cart"} <= names(found),
        True,
    ),
    "service layer GENERAL": (
        "listServices",
        {"layer": "GENERAL"},
        names,
        {"page-shop", "page-cart"},
    ),
    "instance ls": (
        "listInstances",
        {"serviceId": SHOP, "duration": "minutes"},
        names,
        {"shop-1", "shop-2"},
    ),
    "endpoint ls": (
        "findEndpoint",
        {"serviceId": SHOP, "keyword": "", "limit": 100, "duration": "minutes"},
        names,
        {"/pay"},
    ),
    "metrics exec": (
        "execExpression",
        {"expression": "service_cpm", "entity": WHO, "duration": "minutes"},
        lambda found: [one["value"] for one in found["results"][0]["values"] if one["value"]],
        ["6", "2"],
    ),
    "metrics exec of nothing": (
        "execExpression",
        {"expression": "nothing", "entity": WHO, "duration": "minutes"},
        lambda found: (found["type"], "does not exist" in found["error"]),
        ("UNKNOWN", True),
    ),
    "metrics ls": (
        "listMetrics",
        {"regex": "service_cp."},
        names,
        {"service_cpm"},
    ),
    "metrics single": (
        "readMetricsValue",
        {"condition": CALLS, "duration": "minutes"},
        lambda found: found,
        4,
    ),
    "metrics nullable": (
        "readNullableMetricsValue",
        {"condition": CALLS | {"name": "service_nothing"}, "duration": "minutes"},
        lambda found: found,
        {"value": 0, "isEmptyValue": True},
    ),
    "metrics linear": (
        "readMetricsValues",
        {"condition": CALLS, "duration": "minutes"},
        told,
        [6, 2],
    ),
    "metrics multiple-linear": (
        "readLabeledMetricsValues",
        {
            "condition": CALLS | {"name": "service_percentile"},
            "labels": ["0", "1", "2", "3", "4"],
            "duration": "minutes",
        },
        lambda found: [(one["label"], told(one)) for one in found],
        [(str(label), [100, 300]) for label in range(5)],
    ),
    "metrics top": (
        "sortMetrics",
        {
            "condition": {"name": "service_cpm", "topN": 5, "order": "DES", "normal": True},
            "duration": "minutes",
        },
        lambda found: [(one["name"], one["value"]) for one in found],
        [("page-cart", "4"), ("page-shop", "4")],
    ),
    "metrics thermodynamic": (
        "readHeatMap",
        {"condition": CALLS | {"name": "service_percentile"}, "duration": "minutes"},
        lambda found: sum(sum(one["values"]) for one in found["values"]),
        8,
    ),
    "metrics records": (
        "readRecords",
        {
            "condition": {
                "name": "top_n_database_statement",
                "topN": 5,
                "order": "DES",
                "parentEntity": {"scope": "Service", "serviceName": DATABASE, "normal": False},
            },
            "duration": "minutes",
        },
        lambda found: [(one["name"], one["value"], one["refId"]) for one in found],
        [("select 1", "900", "t-1")],
    ),
    "dependency global": (
        "getGlobalTopology",
        {"duration": "minutes", "layer": "GENERAL"},
        ends,
        [("page-shop", "page-cart")],
    ),
    "dependency service": (
        "getServiceTopology",
        {"serviceId": CART, "duration": "minutes"},
        ends,
        [("page-shop", "page-cart")],
    ),
    "dependency instance": (
        "getServiceInstanceTopology",
        {"clientServiceId": SHOP, "serverServiceId": CART, "duration": "minutes"},
        ends,
        [("shop-1", "cart-1")],
    ),
    "dependency endpoint": (
        "getEndpointDependencies",
        {"endpointId": ids.endpoint_id(CART, "/add"), "duration": "minutes"},
        ends,
        [("/pay", "/add")],
    ),
    "trace ls": (
        "queryBasicTraces",
        {"condition": {"queryDuration": "seconds", **ORDERED}},
        lambda found: [one["traceIds"] for one in found["traces"]],
        [[TRACE]],
    ),
    "tv2 ls": (
        "queryTraces",
        {"condition": {"queryDuration": "seconds", **ORDERED}},
        lambda found: [len(one["spans"]) for one in found["traces"]],
        [1],
    ),
    "trace": (
        "queryTrace",
        {"traceId": TRACE},
        lambda found: [one["endpointName"] for one in found["spans"]],
        ["/pay"],
    ),
    "logs ls": (
        "queryLogs",
        {"condition": {"queryDuration": "seconds", "paging": PAGE, "tags": []}},
        lambda found: [one["content"] for one in found["logs"]],
        ["no money"],
    ),
    "event ls": (
        "queryEvents",
        {"condition": {"time": "seconds", "paging": PAGE}},
        lambda found: [one["uuid"] for one in found["events"]],
        ["page-event"],
    ),
    "menu get": (
        "getMenuItems",
        {},
        lambda found: [one["title"] for one in found if one["activate"]],
        ["General Service"],
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_swctl_is_answered_with_what_is_stored(swctl: Swctl, command: str) -> None:
    operation, variables, shown, expected = COMMANDS[command]
    assert shown(swctl.run(operation, **variables)) == expected

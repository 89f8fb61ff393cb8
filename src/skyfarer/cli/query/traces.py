"""`skyfarer query traces` and `skyfarer query trace`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.cli.query import who
from skyfarer.cli.query.client import Oap
from skyfarer.cli.query.drawing import plain, table
from skyfarer.cli.query.times import Span

BAR: Final = 24
DEPTH_MAX: Final = 40  # as deep as is indented
_LIST = """query traces($condition: TraceQueryCondition) {
  found: queryBasicTraces(condition: $condition) {
    traces { segmentId endpointNames duration start isError traceIds }
  }
}"""
_ONE = """query trace($id: ID!) {
  found: queryTrace(traceId: $id) {
    spans {
      traceId segmentId spanId parentSpanId refs { traceId parentSegmentId parentSpanId type }
      serviceCode serviceInstanceName startTime endTime endpointName type peer component isError
      layer tags { key value } logs { time data { key value } }
    }
  }
}"""
_ORDERS: Final = {"start": "BY_START_TIME", "duration": "BY_DURATION"}


@dataclass(frozen=True)
class Wanted:
    service: str | None = None
    instance: str | None = None
    endpoint: str | None = None
    state: str = "all"
    order: str = "start"
    tags: Sequence[str] = ()
    min_ms: int = 0
    max_ms: int = 0
    page: int = 1
    limit: int = 20


def pairs(tags: Sequence[str]) -> list[dict[str, str]]:
    """`key=value` of each; ConfigError for what is not."""
    found = [tag.partition("=") for tag in tags]
    for key, equals, value in found:
        if not key or not equals or not value:
            raise ConfigError(f"--tag '{key}{equals}{value}' is not like http.method=GET")
    return [{"key": key, "value": value} for key, _, value in found]


def whose(
    oap: Oap, span: Span, service: str | None, instance: str | None, endpoint: str | None
) -> dict[str, str]:
    """The ids of a condition; ConfigError for a part without its service."""
    if service is None:
        if instance or endpoint:
            raise ConfigError("--instance and --endpoint need a --service")
        return {}
    of = who.service(oap, service)
    ids = {"serviceId": of.id}
    if instance is not None:
        ids["serviceInstanceId"] = who.instance(oap, of, instance, span.charted())
    if endpoint is not None:
        ids["endpointId"] = who.endpoint(oap, of, endpoint)
    return ids


def traces(oap: Oap, span: Span, wanted: Wanted, as_json: bool) -> int:
    condition = {
        **whose(oap, span, wanted.service, wanted.instance, wanted.endpoint),
        "queryDuration": span.by_seconds(),
        "traceState": wanted.state.upper(),
        "queryOrder": _ORDERS[wanted.order],
        "minTraceDuration": wanted.min_ms,
        "maxTraceDuration": wanted.max_ms,
        "tags": pairs(wanted.tags),
        "paging": {"pageNum": wanted.page, "pageSize": wanted.limit},
    }
    found = oap.ask(_LIST, condition=condition)["found"]["traces"]
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    elif not found:
        print("no traces like that in that time")
    else:
        heads = ("start", "ms", "state", "endpoint", "trace id")
        rows = [_listed(one, span) for one in found]
        print(table(heads, rows, (0, 2, 3, 4)))
        if len(found) == wanted.limit:
            print(f"there may be more: --page {wanted.page + 1}")
    return 0


def _listed(one: dict[str, Any], span: Span) -> tuple[str, ...]:
    return (
        span.clock(int(one["start"]), milliseconds=True),
        str(one["duration"]),
        "error" if one["isError"] else "ok",
        ", ".join(one["endpointNames"]),
        ", ".join(one["traceIds"]),
    )


def trace(oap: Oap, identifier: str, as_json: bool) -> int:
    found = oap.ask(_ONE, id=identifier)["found"] or {}
    spans = found.get("spans") or []
    if not spans:
        raise PermanentError(f"there is no trace '{identifier}'")
    if as_json:
        print(json.dumps(spans, indent=2, ensure_ascii=False))
        return 0
    start = min(span["startTime"] for span in spans)
    whole_ms = max(span["endTime"] for span in spans) - start
    services = len({span["serviceCode"] for span in spans})
    print(f"trace {plain(identifier)}: {whole_ms} ms, {len(spans)} spans, {services} services")
    depths = _depths(spans)
    rows = [_spoken(one, depth, start, whole_ms) for one, depth in zip(spans, depths, strict=True)]
    print(table(("span", "service", "component", "at", "ms", "", ""), rows, (0, 1, 2, 5, 6)))
    return 0


def _depths(spans: Sequence[dict[str, Any]]) -> list[int]:
    """A parent comes before its children; one that is not there is no parent."""
    known: dict[tuple[str, int], int] = {}
    depths = []
    for span in spans:
        parent = (span["segmentId"], span["parentSpanId"])
        if refs := span["refs"]:
            parent = (refs[-1]["parentSegmentId"], refs[-1]["parentSpanId"])
        depths.append(known.get(parent, -1) + 1)
        known[span["segmentId"], span["spanId"]] = depths[-1]
    return depths


def _spoken(span: dict[str, Any], depth: int, start: int, whole_ms: int) -> tuple[str, ...]:
    began, lasted = span["startTime"] - start, span["endTime"] - span["startTime"]
    indent = "  " * min(depth, DEPTH_MAX)
    name = span["endpointName"] or span["peer"] or span["type"]
    return (
        f"{indent}{name} ({span['type']})",
        span["serviceCode"],
        span["component"] or "",
        f"+{began}",
        str(lasted),
        _bar(began, lasted, whole_ms),
        "ERROR" if span["isError"] else "",
    )


def _bar(began: int, lasted: int, whole_ms: int) -> str:
    scale = BAR / max(whole_ms, 1)
    blank = min(int(began * scale), BAR - 1)
    length = max(1, min(round(lasted * scale), BAR - blank))
    return "·" * blank + "█" * length + "·" * (BAR - blank - length)

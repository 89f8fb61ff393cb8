"""`skyfarer query metrics EXPRESSION`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.cli.query import who
from skyfarer.cli.query.client import Oap
from skyfarer.cli.query.drawing import NOTHING, average, figure, number, plain, sparkline, table
from skyfarer.cli.query.times import Span

_ASKED = """query metrics($expression: String!, $entity: Entity!, $duration: Duration!) {
  found: execExpression(expression: $expression, entity: $entity, duration: $duration) {
    type error
    results {
      metric { labels { key value } }
      values {
        id value traceID
        owner { scope serviceName normal serviceInstanceName endpointName }
      }
    }
  }
}"""


@dataclass(frozen=True)
class Whose:
    """By names; of everybody where there is no service."""

    service: str | None = None
    instance: str | None = None
    endpoint: str | None = None
    to: str | None = None
    to_instance: str | None = None
    to_endpoint: str | None = None

    def entity(self, oap: Oap) -> dict[str, Any]:
        parts = (self.instance, self.endpoint, self.to, self.to_instance, self.to_endpoint)
        if self.service is None:
            if any(parts):
                raise ConfigError("what is part of a service, or called by one, needs a --service")
            return {}
        of = who.service(oap, self.service)
        names = {"serviceInstanceName": self.instance, "endpointName": self.endpoint}
        names |= {"destServiceInstanceName": self.to_instance, "destEndpointName": self.to_endpoint}
        entity = {"serviceName": of.name, "normal": of.normal}
        if self.to is not None:
            dest = who.service(oap, self.to)
            entity |= {"destServiceName": dest.name, "destNormal": dest.normal}
        return entity | {key: name for key, name in names.items() if name is not None}


def metrics(
    oap: Oap, span: Span, expression: str, whose: Whose, points: bool, as_json: bool
) -> int:
    """PermanentError, with the server's own words, for what it cannot evaluate."""
    asked = {"entity": whose.entity(oap), "duration": span.charted()}
    found = oap.ask(_ASKED, expression=expression, **asked)["found"]
    if found["error"]:
        raise PermanentError(f"{plain(expression)}: {plain(found['error'], 500)}")
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    elif not any(series["values"] for series in found["results"]):
        print("no values: nothing was recorded, or the metric is of something else")
    elif found["type"] in ("SORTED_LIST", "RECORD_LIST"):
        print(_ranks(found["results"]))
    elif points:
        print(_points(found["results"], span))
    else:
        print(_series(found["results"]))
    return 0


def _numbers(series: Mapping[str, Any]) -> list[float | None]:
    return [number(one["value"]) for one in series["values"]]


def _labels(series: Mapping[str, Any]) -> str:
    labels = series["metric"]["labels"]
    return ",".join(f"{one['key']}={one['value']}" for one in labels) or NOTHING


def _series(results: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for series in results:
        values = _numbers(series)
        there = [value for value in values if value is not None]
        known = [value for value in there if not isnan(value)] or there
        ends = (min(known, default=None), average(known), max(known, default=None))
        last = there[-1] if there else None
        rows.append((_labels(series), *map(figure, (*ends, last)), sparkline(values)))
    return table(("labels", "least", "average", "most", "last", "over time"), rows, (0, 5))


def _points(results: Sequence[Mapping[str, Any]], span: Span) -> str:
    rows = [
        (_labels(series), _moment(one["id"], span), one["value"] or NOTHING)
        for series in results
        for one in series["values"]
    ]
    return table(("labels", "time", "value"), rows, (0, 1))


def _moment(identifier: str | None, span: Span) -> str:
    return span.clock(int(identifier)) if identifier and identifier.isdigit() else NOTHING


def _ranks(results: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (_owner(one), one["value"] or NOTHING, one["traceID"] or "")
        for series in results
        for one in series["values"]
    ]
    return table(("what", "value", "trace id"), rows, (0, 2))


def _owner(one: Mapping[str, Any]) -> str:
    owner = one["owner"] or {}
    parts = (owner.get(key) for key in ("serviceName", "serviceInstanceName", "endpointName"))
    return " ".join(part for part in parts if part) or str(one["id"])

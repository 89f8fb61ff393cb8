"""`skyfarer query services`, `instances` and `endpoints`, with how they do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skyfarer.cli.query import who
from skyfarer.cli.query.client import Oap
from skyfarer.cli.query.drawing import NOTHING, average, figure, number, sparkline, table
from skyfarer.cli.query.times import Span
from skyfarer.cli.query.who import Service

ENTITIES_A_REQUEST: Final = 40
HEADS: Final = ("load /min", "success %", "latency ms", "load over time")
DIVISORS: Final = (1, 100, 1)
SPARKS: Final = 30
SHOWN: Final = ("id", "name", "layers", "normal")


@dataclass(frozen=True)
class Vitals:
    """Which metrics say how something does; the success is in hundredths of a percent."""

    load: str
    success: str = ""
    latency: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.load, self.success, self.latency)))


SERVICE: Final = Vitals("service_cpm", "service_sla", "service_resp_time")
INSTANCE: Final = Vitals(
    "service_instance_cpm", "service_instance_sla", "service_instance_resp_time"
)
ENDPOINT: Final = Vitals("endpoint_cpm", "endpoint_sla", "endpoint_resp_time")
LAYERS: Final[Mapping[str, Vitals]] = {
    "VIRTUAL_DATABASE": Vitals(
        "database_access_cpm", "database_access_sla", "database_access_resp_time"
    ),
    "VIRTUAL_CACHE": Vitals("cache_access_cpm", "cache_access_sla", "cache_access_resp_time"),
    "VIRTUAL_MQ": Vitals(
        "mq_service_consume_cpm", "mq_service_consume_sla", "mq_service_consume_latency"
    ),
    "BROWSER": Vitals("browser_app_pv"),
}


def services(oap: Oap, span: Span, layer: str | None, limit: int, as_json: bool) -> int:
    found = who.services(oap, layer)
    if as_json:
        shown = ((s.id, s.name, s.layers, s.normal) for s in found[:limit])
        return _json([dict(zip(SHOWN, one, strict=True)) for one in shown])
    asked = [(_entity(one), _vitals_of(one)) for one in found[:limit]]
    figures = _figures(oap, span, asked)
    rows = [(s.name, ",".join(s.layers), *_row(f)) for s, f in zip(found, figures, strict=False)]
    return _table(("service", "layers"), rows, "services", len(found))


def instances(oap: Oap, span: Span, service: str, limit: int, as_json: bool) -> int:
    of = who.service(oap, service)
    found = oap.ask(who.INSTANCES, serviceId=of.id, duration=span.charted())["listInstances"]
    if as_json:
        return _json(found[:limit])
    asked = [(_entity(of, serviceInstanceName=one["name"]), INSTANCE) for one in found[:limit]]
    figures = _figures(oap, span, asked)
    rows = [
        (one["name"], one["language"], *_row(values))
        for one, values in zip(found, figures, strict=False)
    ]
    return _table(("instance", "language"), rows, "instances", len(found))


def endpoints(oap: Oap, span: Span, service: str, keyword: str, limit: int, as_json: bool) -> int:
    of = who.service(oap, service)
    wanted = {"keyword": keyword, "limit": limit, "duration": span.charted()}
    found = oap.ask(who.ENDPOINTS, serviceId=of.id, **wanted)["findEndpoint"]
    if as_json:
        return _json(found)
    figures = _figures(oap, span, [(_entity(of, endpointName=e["name"]), ENDPOINT) for e in found])
    rows = [(e["name"], *_row(values)) for e, values in zip(found, figures, strict=False)]
    return _table(("endpoint",), rows, "endpoints", len(found))


def _entity(of: Service, **names: str) -> dict[str, Any]:
    return {"serviceName": of.name, "normal": of.normal, **names}


def _vitals_of(service: Service) -> Vitals:
    return next((LAYERS[layer] for layer in service.layers if layer in LAYERS), SERVICE)


Values = list[float | None]


def _figures(
    oap: Oap, span: Span, asked: Sequence[tuple[dict[str, Any], Vitals]]
) -> Iterator[list[Values]]:
    """Of each entity its series, by load, success and latency; a few entities a request."""
    for first in range(0, len(asked), ENTITIES_A_REQUEST):
        some = asked[first : first + ENTITIES_A_REQUEST]
        variables = {f"e{at}": entity for at, (entity, _) in enumerate(some)}
        data = oap.ask(_document(some), d=span.charted(), **variables)
        for at, (_, vitals) in enumerate(some):
            yield [series(data[f"m{at}_{number}"]) for number in range(len(vitals.names))]


def _document(some: Sequence[tuple[dict[str, Any], Vitals]]) -> str:
    arguments = "".join(f", $e{at}: Entity!" for at in range(len(some)))
    fields = " ".join(
        f'm{at}_{number}: execExpression(expression: "{name}", entity: $e{at}, duration: $d) '
        "{ results { values { value } } }"
        for at, (_, vitals) in enumerate(some)
        for number, name in enumerate(vitals.names)
    )
    return f"query vitals($d: Duration!{arguments}) {{ {fields} }}"


def series(result: Mapping[str, Any]) -> Values:
    """The first one's values; none is a point without a value."""
    return [number(one["value"]) for found in result["results"][:1] for one in found["values"]]


def _row(values: Sequence[Values]) -> tuple[str, ...]:
    """What a layer has no metric for is nothing."""
    averages = [average(series) for series in values]
    averages += [None] * (len(DIVISORS) - len(averages))
    figures = (figure(value, by) for value, by in zip(averages, DIVISORS, strict=True))
    return (*figures, sparkline(values[0], SPARKS) or NOTHING)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], what: str, there: int) -> int:
    if not rows:
        print(f"no {what} in that time" if what != "services" else "no services are known yet")
        return 0
    left = (*range(len(heads)), len(heads) + 3)
    print(table((*heads, *HEADS), rows, left))
    if there > len(rows):
        print(f"{there - len(rows)} more: raise --limit")
    return 0


def _json(found: object) -> int:
    print(json.dumps(found, indent=2, ensure_ascii=False))
    return 0

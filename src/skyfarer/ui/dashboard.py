"""What a service's dashboard shows beside its vitals: percentiles, apdex, endpoints, instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from skyfarer.ui.api import OapClient
from skyfarer.ui.model import WINDOW_MINUTES, Series, ServerTime, Service

PERCENTILES: Final = ("50", "90", "99")
ROWS_MAX: Final = 10
_LISTS: Final = {
    "slowest": f"top_n(endpoint_resp_time, {ROWS_MAX}, des)",
    "busiest": f"top_n(endpoint_cpm, {ROWS_MAX}, des)",
    "instance_cpm": f"top_n(service_instance_cpm, {ROWS_MAX}, des)",
    "instance_resp_time": f"top_n(service_instance_resp_time, {ROWS_MAX}, des)",
    "instance_sla": f"top_n(service_instance_sla, {ROWS_MAX}, asc)",
}
_SERIES: Final = {
    "percentile": f"service_percentile{{p='{','.join(PERCENTILES)}'}}",
    "apdex": "service_apdex",
}
_FIELDS: Final = " ".join(
    f'{name}: execExpression(expression: "{text}", entity: $entity, duration: $duration)'
    " { results { metric { labels { key value } } values { id value } } }"
    for name, text in (_SERIES | _LISTS).items()
)
_DOCUMENT: Final = f"""query dashboard($entity: Entity!, $duration: Duration!, $service: ID!) {{
  {_FIELDS}
  listInstances(duration: $duration, serviceId: $service) {{ name language }}
}}"""


@dataclass(frozen=True)
class Named:
    """An entity of a list, and its value over the time."""

    name: str
    value: int


@dataclass(frozen=True)
class Instance:
    name: str
    language: str
    cpm: int | None
    resp_time_ms: int | None
    sla: int | None


@dataclass(frozen=True)
class Dashboard:
    percentiles: Mapping[str, Series]
    apdex: Series
    slowest: tuple[Named, ...]
    busiest: tuple[Named, ...]
    instances: tuple[Instance, ...]


async def dashboard(client: OapClient, time: ServerTime, service: Service) -> Dashboard:
    asked = {
        "entity": {"serviceName": service.name, "normal": service.normal},
        "duration": time.duration(WINDOW_MINUTES + 1),
        "service": service.id,
    }
    data = await client.graphql(_DOCUMENT, asked)
    return Dashboard(
        percentiles=_percentiles(data["percentile"]),
        apdex=next(iter(_lines(data["apdex"]).values()), Series()),
        slowest=_list(data["slowest"]),
        busiest=_list(data["busiest"]),
        instances=_instances(data),
    )


def _percentiles(result: Mapping[str, Any]) -> dict[str, Series]:
    lines = {dict(labels).get("p", ""): series for labels, series in _lines(result).items()}
    return {p: lines[p] for p in PERCENTILES if p in lines}


def _lines(result: Mapping[str, Any]) -> dict[tuple[tuple[str, str], ...], Series]:
    return {
        tuple((label["key"], label["value"]) for label in one["metric"]["labels"]): Series(
            tuple(_number(value["value"]) for value in one["values"])
        )
        for one in result["results"]
    }


def _list(result: Mapping[str, Any]) -> tuple[Named, ...]:
    values = [value for one in result["results"] for value in one["values"]]
    return tuple(Named(value["id"], _number(value["value"]) or 0) for value in values)


def _instances(data: Mapping[str, Any]) -> tuple[Instance, ...]:
    """The busiest first, then those without calls."""
    cpm, resp_time, sla = (
        {one.name: one.value for one in _list(data[f"instance_{what}"])}
        for what in ("cpm", "resp_time", "sla")
    )
    found = [
        Instance(name, one["language"], cpm.get(name), resp_time.get(name), sla.get(name))
        for one in data["listInstances"]
        for name in [one["name"]]
    ]
    found.sort(key=lambda one: (-(one.cpm or 0), one.name))
    return tuple(found[:ROWS_MAX])


def _number(text: str | None) -> int | None:
    return None if text is None else int(float(text))

"""What a service's dashboard shows beside its vitals: percentiles, apdex, endpoints, instances, and
the runtime of one of those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from skyfarer.ui.api import OapClient
from skyfarer.ui.kinds import ROWS_MAX, Kind, kind_of
from skyfarer.ui.model import Series, Service
from skyfarer.ui.runtime import Runtime, runtime
from skyfarer.ui.window import Buckets

PERCENTILES: Final = ("50", "90", "99")
_OF_INSTANCES: Final = {
    "instance_cpm": f"top_n(service_instance_cpm, {ROWS_MAX}, des)",
    "instance_resp_time": f"top_n(service_instance_resp_time, {ROWS_MAX}, des)",
    "instance_sla": f"top_n(service_instance_sla, {ROWS_MAX}, asc)",
}


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
    """`runtime` is that of one of the instances, where it says any."""

    percentiles: Mapping[str, Series]
    apdex: Series
    slowest: tuple[Named, ...]
    busiest: tuple[Named, ...]
    instances: tuple[Instance, ...]
    runtime: Runtime | None = None


async def dashboard(
    client: OapClient, buckets: Buckets, service: Service, instance: str = ""
) -> Dashboard:
    """`instance` is the one whose runtime is wanted; any, where it is none of them."""
    asked: dict[str, Any] = {
        "entity": {"serviceName": service.name, "normal": service.normal},
        "duration": buckets.duration(),
        "service": service.id,
    }
    kind = kind_of(service)
    data = await client.graphql(_document(kind, service.normal), asked)
    instances = _instances(data) if service.normal else ()
    chosen = next((one for one in instances if one.name == instance), next(iter(instances), None))
    found = None
    if chosen is not None:
        found = await runtime(client, buckets, service, chosen.name, chosen.language)
    return Dashboard(
        percentiles=_percentiles(data["percentile"], buckets.growing),
        apdex=_apdex(data, buckets.growing),
        slowest=_list(data["slowest"]),
        busiest=_list(data["busiest"]) if kind.busy else (),
        instances=instances,
        runtime=found,
    )


def _document(kind: Kind, normal: bool) -> str:
    expressions = {
        "percentile": f"{kind.percentile}{{p='{','.join(PERCENTILES)}'}}",
        "slowest": kind.slow.expression,
        **({"busiest": kind.busy.expression} if kind.busy else {}),
        **({"apdex": kind.apdex} if kind.apdex else {}),
        **(_OF_INSTANCES if normal else {}),
    }
    fields = " ".join(
        f'{name}: execExpression(expression: "{text}", entity: $entity, duration: $duration)'
        " { results { metric { labels { key value } } values { id value } } }"
        for name, text in expressions.items()
    )
    instances = "instances: listInstances(duration: $duration, serviceId: $service)"
    declared = "$entity: Entity!, $duration: Duration!, $service: ID!"
    return f"query dashboard({declared}) {{ {fields} {instances} {{ name language }} }}"


def _apdex(data: Mapping[str, Any], growing: bool) -> Series:
    if "apdex" not in data:
        return Series()
    return next(iter(_lines(data["apdex"], growing).values()), Series())


def _percentiles(result: Mapping[str, Any], growing: bool) -> dict[str, Series]:
    found = _lines(result, growing).items()
    lines = {dict(labels).get("p", ""): series for labels, series in found}
    return {p: lines[p] for p in PERCENTILES if p in lines}


def _lines(result: Mapping[str, Any], growing: bool) -> dict[tuple[tuple[str, str], ...], Series]:
    return {
        tuple((label["key"], label["value"]) for label in one["metric"]["labels"]): Series(
            tuple(_number(value["value"]) for value in one["values"]), growing
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
        for one in data["instances"]
        for name in [one["name"]]
    ]
    found.sort(key=lambda one: (-(one.cpm or 0), one.name))
    return tuple(found[:ROWS_MAX])


def _number(text: str | None) -> int | None:
    return None if text is None else int(float(text))

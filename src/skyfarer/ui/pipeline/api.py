"""What the page of the pipeline asks of the OAP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from skyfarer.ui.api import OapClient
from skyfarer.ui.model import Ledger, Series, ServerTime
from skyfarer.ui.pipeline.model import Analysis, ClusterNode, Look, Satellite, Ttl

SATELLITES_MAX: Final = 10
LAYER: Final = "SO11Y_SATELLITE"
POINTS: Final = 3
_METRICS: Final = {
    "received": "aggregate_labels(satellite_service_receive_event_count{status='all'}, sum)",
    "sent": "aggregate_labels(satellite_service_send_event_count{status='success'}, sum)",
    "connections": "satellite_service_grpc_connect_count",
}
_NODE: Final = f"""query node {{
  checkHealth {{ score details }}
  satellites: listServices(layer: "{LAYER}") {{ id name }}
}}"""


async def look(client: OapClient, time: ServerTime) -> Look:
    told, kept, nodes, node = await asyncio.gather(
        client.get("/status/pipeline"),
        client.get("/status/config/ttl"),
        client.get("/status/cluster/nodes"),
        client.graphql(_NODE, {}),
    )
    satellites = await _satellites(client, time, node["satellites"][:SATELLITES_MAX])
    books, queue, receiver = told["ledger"], told["queue"], told["receiver"]
    return Look(
        time_ms=told["time"],
        started_ms=told["started"],
        ledger=_ledger(books),
        dropped=books["dropped"],
        connections=receiver["connections"],
        refused=_added(receiver["refused"], queue["rejected"]),
        satellite_queues=receiver["satellite_queues"] or 0,
        capacity_s=queue["capacity_s"],
        free_s=queue["free_s"],
        analysis=_analysis(told["analysis"]),
        ttl=_ttl(told["ttl"], kept),
        storage=told["storage"]["provider"] or "",
        memory_bytes={name: one["resident_bytes"] for name, one in told["processes"].items()},
        unwell=_unwell(node["checkHealth"]),
        nodes=tuple(
            ClusterNode(f"{one['host']}:{one['port']}", one["self"]) for one in nodes["nodes"]
        ),
        satellites=satellites,
    )


def _ledger(books: Mapping[str, Any]) -> Ledger:
    dropped = sum(books["dropped"].values())
    figures = (books["accepted"], books["delivered"], books["queued"])
    return Ledger(*figures, dropped, books["balanced"])


def _analysis(told: Mapping[str, Any]) -> Analysis:
    return Analysis(
        lag_s=told["lag_s"],
        batches=told["batches"] or 0,
        restarts=told["restarts"] or 0,
        last_batch_s=told["last_batch_s"],
        last_batch_records=told["last_batch_records"],
        rows=told["rows"],
        records=told["records"],
    )


def _ttl(told: Mapping[str, Any], kept: Mapping[str, Any]) -> Ttl:
    return Ttl(
        record_days=kept["records"]["normal"],
        metrics_days=kept["metrics"]["minute"],
        oldest_s=told["oldest_age_s"],
        last_success_s=told["last_success_age_s"],
        expired_tables=told["expired_tables"] or 0,
        dropped=told["dropped"],
        failures=told["failures"],
    )


def _unwell(health: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence for each part."""
    if not health["score"]:
        return ()
    return tuple((health["details"] or "not started yet").split("; "))


def _added(*counts: Mapping[str, int]) -> dict[str, int]:
    return {
        name: sum(one.get(name, 0) for one in counts)
        for name in sorted({n for c in counts for n in c})
    }


async def _satellites(
    client: OapClient, time: ServerTime, services: list[dict[str, Any]]
) -> tuple[Satellite, ...]:
    if not services:
        return ()
    variables: dict[str, Any] = {"duration": time.duration(POINTS)}
    fields, declared = list[str](), "$duration: Duration!"
    for number, service in enumerate(services):
        declared += f", $e{number}: Entity!, $s{number}: ID!"
        variables[f"e{number}"] = {"serviceName": service["name"], "normal": True}
        variables[f"s{number}"] = service["id"]
        fields += _fields(number)
    data = await client.graphql(f"query satellites({declared}) {{ {' '.join(fields)} }}", variables)
    return tuple(_satellite(data, number, one["name"]) for number, one in enumerate(services))


def _fields(number: int) -> list[str]:
    asked = f"duration: $duration, serviceId: $s{number}"
    return [
        f"instances{number}: listInstances({asked}) {{ name }}",
        *(
            f'{name}{number}: execExpression(expression: "{text}", entity: $e{number},'
            " duration: $duration) { results { values { value } } }"
            for name, text in _METRICS.items()
        ),
    ]


def _satellite(data: Mapping[str, Any], number: int, name: str) -> Satellite:
    figures = {metric: _latest(data[f"{metric}{number}"]) for metric in _METRICS}
    instances = sorted(one["name"] for one in data[f"instances{number}"])
    return Satellite(name, tuple(instances), **figures)


def _latest(result: Mapping[str, Any]) -> int | None:
    values = [value["value"] for one in result["results"][:1] for value in one["values"]]
    found = Series(tuple(None if one is None else float(one) for one in values)).current
    return None if found is None else int(found)

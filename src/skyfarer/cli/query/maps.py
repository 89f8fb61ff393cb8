"""`skyfarer query topology`: who called whom."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from skyfarer.base.errors import ConfigError
from skyfarer.cli.query import who
from skyfarer.cli.query.client import Oap
from skyfarer.cli.query.drawing import NOTHING, table
from skyfarer.cli.query.times import Span

_CALLS = "calls { id source sourceComponents target targetComponents detectPoints }"
_NODES = "nodes { id name type isReal layers }"
_PARTS = "nodes { id name serviceId serviceName isReal }"
_ALL = f"""query map($duration: Duration!, $layer: String) {{
  map: getGlobalTopology(duration: $duration, layer: $layer) {{ {_NODES} {_CALLS} }}
}}"""
_OF_SERVICE = f"""query map($ids: [ID!]!, $duration: Duration!) {{
  map: getServicesTopology(serviceIds: $ids, duration: $duration) {{ {_NODES} {_CALLS} }}
}}"""
_OF_INSTANCES = f"""query map($client: ID!, $server: ID!, $duration: Duration!) {{
  map: getServiceInstanceTopology(
    clientServiceId: $client, serverServiceId: $server, duration: $duration
  ) {{ {_PARTS} {_CALLS} }}
}}"""
_OF_ENDPOINT = f"""query map($id: ID!, $duration: Duration!) {{
  map: getEndpointDependencies(endpointId: $id, duration: $duration) {{ {_PARTS} {_CALLS} }}
}}"""


@dataclass(frozen=True)
class Wanted:
    """Of all services; or of a layer, of a service, of the instances of two, of an endpoint."""

    layer: str | None = None
    service: str | None = None
    to: str | None = None
    endpoint: str | None = None

    def check(self) -> None:
        """ConfigError when it says two things, or half of one."""
        if self.layer and self.service:
            raise ConfigError("--layer and --service are two maps: give one of them")
        if (self.to or self.endpoint) and not self.service:
            raise ConfigError("--to and --endpoint need a --service")
        if self.to and self.endpoint:
            raise ConfigError("--to and --endpoint are two maps: give one of them")


def topology(oap: Oap, span: Span, wanted: Wanted, as_json: bool) -> int:
    found = _asked(oap, span.charted(), wanted)
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    elif not found["calls"]:
        print("no calls in that time")
    else:
        names = {node["id"]: _name(node) for node in found["nodes"]}
        types = {node["id"]: node.get("type") or NOTHING for node in found["nodes"]}
        heads = ("from", "to", "type", "by", "answered by", "seen by")
        rows = [_row(call, names, types) for call in found["calls"]]
        print(table(heads, sorted(rows), range(len(heads))))
    return 0


def _asked(oap: Oap, duration: dict[str, str], wanted: Wanted) -> dict[str, Any]:
    if wanted.service is None:
        data = oap.ask(_ALL, duration=duration, layer=wanted.layer)
        return dict(data["map"])
    of = who.service(oap, wanted.service)
    if wanted.to is not None:
        server = who.service(oap, wanted.to)
        data = oap.ask(_OF_INSTANCES, client=of.id, server=server.id, duration=duration)
    elif wanted.endpoint is not None:
        identifier = who.endpoint(oap, of, wanted.endpoint)
        data = oap.ask(_OF_ENDPOINT, id=identifier, duration=duration)
    else:
        data = oap.ask(_OF_SERVICE, ids=[of.id], duration=duration)
    return dict(data["map"])


def _name(node: dict[str, Any]) -> str:
    of = node.get("serviceName")
    return f"{of} {node['name']}" if of else str(node["name"])


def _row(call: dict[str, Any], names: dict[str, str], types: dict[str, str]) -> tuple[str, ...]:
    ends = (names.get(call["source"], ""), names.get(call["target"], ""))
    components = (call["sourceComponents"], call["targetComponents"])
    seen = " and ".join(point.lower() for point in call["detectPoints"])
    return (
        *ends,
        types.get(call["target"], NOTHING),
        *(", ".join(some) or NOTHING for some in components),
        seen,
    )

"""The maps of instances and of endpoints: ends and calls as they are stored, without types."""

from __future__ import annotations

from collections.abc import Iterable

from skyfarer.oap.core.storage import Relation
from skyfarer.oap.query.naming import is_real, part_name, service_name, service_of
from skyfarer.oap.query.topology.drawing import Calls, View

NO_TYPE = ""


def part_map(seen: Iterable[Relation]) -> View:
    """Of instances, what clients saw before what servers did, or of endpoints."""
    nodes, calls = _drawn(seen)
    return {"nodes": [_node(identifier) for identifier in nodes], "calls": calls.views()}


def older_endpoint_map(seen: Iterable[Relation]) -> View:
    """Of endpoints in the shape of services."""
    nodes, calls = _drawn(seen)
    return {"nodes": [_as_service(identifier) for identifier in nodes], "calls": calls.views()}


def _drawn(seen: Iterable[Relation]) -> tuple[Iterable[str], Calls]:
    nodes, calls = dict[str, None](), Calls()
    for relation in seen:
        nodes |= dict.fromkeys((relation.source_id, relation.dest_id))
        call = calls.between(relation.id, relation.source_id, relation.dest_id)
        call.seen_at(relation.detect_point)
    return nodes, calls


def _node(identifier: str) -> View:
    service_id = service_of(identifier)
    return {
        "id": identifier,
        "name": part_name(identifier),
        "serviceId": service_id,
        "serviceName": service_name(service_id),
        "type": NO_TYPE,
        "isReal": is_real(service_id),
    }


def _as_service(identifier: str) -> View:
    node = {"id": identifier, "name": part_name(identifier), "type": NO_TYPE}
    return {**node, "isReal": True, "layers": []}

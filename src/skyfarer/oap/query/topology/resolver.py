"""The root fields about maps, from the protocol's arguments to its shapes."""

# ruff: noqa: N803  (the protocol's own spelling)

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import DetectPoint, Entity
from skyfarer.oap.core.ids import service_id
from skyfarer.oap.core.storage import Reader, Relation
from skyfarer.oap.query import conditions, limits
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.naming import service_name, service_of
from skyfarer.oap.query.topology.drawing import View
from skyfarer.oap.query.topology.parts import older_endpoint_map, part_map
from skyfarer.oap.query.topology.services import ServiceMap

Argument = Mapping[str, Any]
NOTHING: View = {"nodes": [], "calls": []}


class Topologies:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "getGlobalTopology": self.everything,
            "getServiceTopology": self.of_service,
            "getServiceTopologyByName": self.of_named_service,
            "getServicesTopology": self.of_services,
            "getServicesTopologyByNames": self.of_named_services,
            "getServiceInstanceTopology": self.of_instances,
            "getServiceInstanceTopologyByName": self.of_named_instances,
            "getEndpointDependencies": self.of_endpoint,
            "getEndpointDependenciesByName": self.of_named_endpoint,
            "getEndpointTopology": self.of_endpoint_before,
            "getProcessTopology": lambda **_: NOTHING,
            "getProcessTopologyByName": lambda **_: NOTHING,
        }

    def everything(
        self, duration: Argument, layer: str | None = None, debug: bool | None = None
    ) -> View:
        if not layer:
            return self._services(duration, None)
        return self._services(duration, [service.id for service in self._reader.services(layer)])

    def of_service(self, serviceId: str, duration: Argument, debug: bool | None = None) -> View:
        return self._services(duration, [serviceId])

    def of_named_service(
        self, service: Argument, duration: Argument, debug: bool | None = None
    ) -> View:
        return self._services(duration, [conditions.service_id(service)])

    def of_services(
        self, serviceIds: Sequence[str], duration: Argument, debug: bool | None = None
    ) -> View:
        if len(serviceIds) > limits.TOPOLOGY_SERVICES_MAX:
            raise QueryError(
                f"{len(serviceIds)} services are more than the {limits.TOPOLOGY_SERVICES_MAX} of "
                "one map; ask for a layer or for all of them"
            )
        return self._services(duration, serviceIds)

    def of_named_services(
        self, services: Sequence[Argument], duration: Argument, debug: bool | None = None
    ) -> View:
        return self.of_services([conditions.service_id(one) for one in services], duration)

    def of_instances(
        self,
        clientServiceId: str,
        serverServiceId: str,
        duration: Argument,
        debug: bool | None = None,
    ) -> View:
        ends = {(clientServiceId, serverServiceId), (serverServiceId, clientServiceId)}
        found = [
            relation
            for point in (DetectPoint.CLIENT, DetectPoint.SERVER)
            for relation in self._seen(
                Entity.INSTANCE_RELATION, point, duration, {clientServiceId, serverServiceId}
            )
            if (service_of(relation.source_id), service_of(relation.dest_id)) in ends
        ]
        return part_map(_few(found))

    def of_named_instances(
        self,
        clientService: Argument,
        serverService: Argument,
        duration: Argument,
        debug: bool | None = None,
    ) -> View:
        ends = conditions.service_id(clientService), conditions.service_id(serverService)
        return self.of_instances(*ends, duration)

    def of_endpoint(self, endpointId: str, duration: Argument, debug: bool | None = None) -> View:
        return part_map(self._of_endpoint(endpointId, duration))

    def of_named_endpoint(
        self, endpoint: Argument, duration: Argument, debug: bool | None = None
    ) -> View:
        return part_map(self._of_endpoint(conditions.endpoint_id(endpoint), duration))

    def of_endpoint_before(self, endpointId: str, duration: Argument) -> View:
        return older_endpoint_map(self._of_endpoint(endpointId, duration))

    def _of_endpoint(self, identifier: str, duration: Argument) -> Sequence[Relation]:
        seen = self._seen(Entity.ENDPOINT_RELATION, DetectPoint.SERVER, duration, {identifier})
        return _few(seen)

    def _services(self, duration: Argument, of: Collection[str] | None) -> View:
        if of is not None and not of:
            return NOTHING
        clients = self._calls(DetectPoint.CLIENT, duration, of)
        servers = self._calls(DetectPoint.SERVER, duration, of)
        _few([*clients, *servers])
        aliases = self._aliases(clients)
        ends = {end for one in (*clients, *servers) for end in (one.source_id, one.dest_id)}
        known = self._reader.services(None, ends.union(map(service_id, aliases.values())))
        drawing = ServiceMap({one.id: one.layers for one in known}, aliases)
        drawing.add_clients(clients)
        drawing.add_servers(servers)
        if of is not None:
            self._tell_outsiders(drawing, clients, duration, of)
        return drawing.view()

    def _tell_outsiders(
        self,
        drawing: ServiceMap,
        clients: Sequence[Relation],
        duration: Argument,
        of: Collection[str],
    ) -> None:
        """Who calls the services asked for was seen as a client alone: what it serves with stands
        in calls that were not asked for."""
        asked = set(of)
        if outsiders := {one.source_id for one in clients if one.source_id not in asked}:
            drawing.tell_types(self._calls(DetectPoint.SERVER, duration, outsiders))

    def _calls(
        self, point: DetectPoint, duration: Argument, of: Collection[str] | None
    ) -> Sequence[Relation]:
        return self._seen(Entity.SERVICE_RELATION, point, duration, of)

    def _seen(
        self, entity: Entity, point: DetectPoint, duration: Argument, of: Collection[str] | None
    ) -> Sequence[Relation]:
        span = Duration.of(duration)
        if (days := (span.end - span.start).days) > limits.TOPOLOGY_DAYS_MAX:
            raise QueryError(
                f"a map of {days} days is longer than {limits.TOPOLOGY_DAYS_MAX}; "
                "ask for a shorter duration"
            )
        return self._reader.relations(entity, point, *span.buckets, of)

    def _aliases(self, clients: Sequence[Relation]) -> dict[str, str]:
        """Of what clients called: address → service."""
        called = list({service_name(relation.dest_id) for relation in clients})
        if not called:
            return {}
        table = self._reader.aliases()
        address = table["address"]
        found = table.filter(pc.is_in(address, value_set=pa.array(called, address.type)))
        pairs = zip(found["address"].to_pylist(), found["alias_service"].to_pylist(), strict=True)
        return dict(pairs)


def _few(seen: Sequence[Relation]) -> Sequence[Relation]:
    if len({relation.id for relation in seen}) > limits.TOPOLOGY_CALLS_MAX:
        raise QueryError(
            f"the map has more than {limits.TOPOLOGY_CALLS_MAX} calls; ask for a shorter duration, "
            "a layer, or some of the services"
        )
    return seen

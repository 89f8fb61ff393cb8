"""Services, instances and endpoints of v2 agents: each name gets an id.

A name that has an id is answered with it. One that has none is handed to the queue, and left out
of the answer until it has one: the agent asks again. A name is cut to its length before anything,
and answered as the agent wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.receivers.answers.creating import ids, moment_ms, new
from skyfarer.oap.receivers.answers.names import Names
from skyfarer.oap.receivers.answers.naming import (
    NODE_TYPES,
    NameLengths,
    instance_name,
    instance_properties,
)
from skyfarer.oap.receivers.answers.outcome import Outcome, decoded
from skyfarer.wire.messages import v2_register

# Of one request; what is beyond stays without an id for now, and the agent asks again.
NAMES_MAX: Final = 1000


class Registering:
    """Its methods are handlers."""

    def __init__(self, names: Names, lengths: NameLengths, clock: Clock) -> None:
        self._names = names
        self._lengths = lengths
        self._clock = clock

    def services(self, request: bytes) -> Outcome:
        services = decoded(v2_register.Services(), request).services[:NAMES_MAX]
        now_ms = self._clock.now_ms()
        wanted = {
            one.serviceName: new(
                InventoryScope.SERVICE,
                now_ms,
                name=one.serviceName[: self._lengths.service],
                node_type=NODE_TYPES.get(one.type, 0),
            )
            for one in services
            if one.serviceName
        }
        known, keep = ids(self._names, wanted)
        answer = v2_register.ServiceRegisterMapping(services=pairs(known))
        complete = len(known) == len({one.serviceName for one in services})
        return Outcome(answer.SerializeToString(), keep, complete)

    def instances(self, request: bytes) -> Outcome:
        """Of services that exist: without its service an instance has no name."""
        instances = decoded(v2_register.ServiceInstances(), request).instances[:NAMES_MAX]
        services = self._services(one.serviceId for one in instances)
        wanted = {
            (one.serviceId, one.instanceUUID): self._instance(one, services[one.serviceId].name)
            for one in instances
            if one.instanceUUID and one.serviceId in services
        }
        known, keep = ids(self._names, wanted)
        answer = v2_register.ServiceInstanceRegisterMapping(
            serviceInstances=pairs({uuid: number for (_, uuid), number in known.items()})
        )
        complete = len(known) == len({(one.serviceId, one.instanceUUID) for one in instances})
        return Outcome(answer.SerializeToString(), keep, complete)

    def endpoints(self, request: bytes) -> Outcome:
        """Those that are served; what a client calls them is neither registered nor waited for."""
        endpoints = decoded(v2_register.Endpoints(), request).endpoints[:NAMES_MAX]
        served = {
            (one.serviceId, one.endpointName)
            for one in endpoints
            if getattr(one, "from") == v2_register.server
        }
        services = self._services(service_id for service_id, _ in served)
        now_ms = self._clock.now_ms()
        wanted = {
            (service_id, name): new(
                InventoryScope.ENDPOINT,
                now_ms,
                name=name[: self._lengths.endpoint],
                service_id=service_id,
                detect_point=int(v2_register.server),
            )
            for service_id, name in served
            if name and service_id in services
        }
        known, keep = ids(self._names, wanted)
        return Outcome(_elements(known).SerializeToString(), keep, len(known) == len(served))

    def _services(self, service_ids: Iterable[int]) -> Mapping[int, Inventory]:
        return self._names.find_by_id(InventoryScope.SERVICE, service_ids)

    def _instance(self, told: v2_register.ServiceInstance, service: str) -> Inventory:
        properties = instance_properties(told.properties)
        name = instance_name(service, told.instanceUUID, properties)
        return new(
            InventoryScope.SERVICE_INSTANCE,
            moment_ms(told.time, self._clock),
            name=name[: self._lengths.instance],
            service_id=told.serviceId,
            uuid=told.instanceUUID[: self._lengths.uuid],
            properties=json.dumps(properties) if properties else "",
        )


def pairs(known: Mapping[str, int]) -> list[v2_register.KeyIntValuePair]:
    return [v2_register.KeyIntValuePair(key=key, value=number) for key, number in known.items()]


def _elements(known: Mapping[tuple[int, str], int]) -> v2_register.EndpointMapping:
    mapping = v2_register.EndpointMapping()
    for (service_id, name), number in known.items():
        element = mapping.elements.add(serviceId=service_id, endpointName=name, endpointId=number)
        setattr(element, "from", v2_register.server)
    return mapping

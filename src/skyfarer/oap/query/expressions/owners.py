"""Who an entity id speaks of, in the protocol's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import Entity
from skyfarer.oap.query.expressions.results import Owner

SCOPES: Final[Mapping[Entity, str]] = {
    Entity.SERVICE: "Service",
    Entity.INSTANCE: "ServiceInstance",
    Entity.ENDPOINT: "Endpoint",
    Entity.SERVICE_RELATION: "ServiceRelation",
    Entity.INSTANCE_RELATION: "ServiceInstanceRelation",
    Entity.ENDPOINT_RELATION: "EndpointRelation",
}
UNNAMED: Final = "Unknown"
"""Relations have no name in a list, in the original neither."""


def service_of(entity_id: str) -> str:
    """The id of the service that an entity is, or is a part of."""
    return entity_id.partition("_")[0]


def owner_of(kind: Entity, entity_id: str) -> Owner:
    scope = SCOPES[kind]
    if kind not in (Entity.SERVICE, Entity.INSTANCE, Entity.ENDPOINT):
        return Owner(scope)
    service_id = service_of(entity_id)
    service, normal = ids.decode_service_id(service_id)
    if kind is Entity.SERVICE:
        return Owner(scope, service_id, service, normal)
    part = ids.decode_part_id(entity_id)[1]
    if kind is Entity.INSTANCE:
        return Owner(scope, service_id, service, normal, entity_id, part)
    return Owner(scope, service_id, service, normal, endpoint_id=entity_id, endpoint=part)


def name_of(owner: Owner, of_all: bool) -> str:
    """A part of a service by its own name; among those of all services, the service's first."""
    part = owner.instance if owner.instance is not None else owner.endpoint
    if part is None:
        return UNNAMED if owner.service is None else owner.service
    return f"{owner.service} - {part}" if of_all else part

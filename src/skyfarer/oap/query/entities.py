"""Which entity a metric speaks of, and its id out of the names that a client sends.

The source decides (`core.entities`): a client never says whether it means a service or an endpoint.
It names the origin of a relation plainly, the destination with `dest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import Entity


class _MissingError(Exception):
    """A name, or a flag, that the kind of entity needs."""


class _Names:
    def __init__(self, sent: Mapping[str, object]) -> None:
        self._sent = sent

    def name(self, key: str) -> str:
        name = self._sent.get(key)
        if not isinstance(name, str) or not name:
            raise _MissingError(key)
        return name

    def service(self, key: str = "serviceName", flag: str = "normal") -> str:
        normal = self._sent.get(flag)
        if not isinstance(normal, bool):
            raise _MissingError(flag)
        return ids.service_id(self.name(key), normal)

    def dest_service(self) -> str:
        return self.service("destServiceName", "destNormal")


def _instance(names: _Names) -> str:
    return ids.instance_id(names.service(), names.name("serviceInstanceName"))


def _endpoint(names: _Names) -> str:
    return ids.endpoint_id(names.service(), names.name("endpointName"))


def _service_relation(names: _Names) -> str:
    return ids.relation_id(names.service(), names.dest_service())


def _instance_relation(names: _Names) -> str:
    dest = ids.instance_id(names.dest_service(), names.name("destServiceInstanceName"))
    return ids.relation_id(_instance(names), dest)


def _endpoint_relation(names: _Names) -> str:
    source, dest = names.name("endpointName"), names.name("destEndpointName")
    return ids.endpoint_relation_id(names.service(), source, names.dest_service(), dest)


_IDS: Final[Mapping[Entity, Callable[[_Names], str]]] = {
    Entity.SERVICE: _Names.service,
    Entity.INSTANCE: _instance,
    Entity.ENDPOINT: _endpoint,
    Entity.SERVICE_RELATION: _service_relation,
    Entity.INSTANCE_RELATION: _instance_relation,
    Entity.ENDPOINT_RELATION: _endpoint_relation,
}


def entity_id(kind: Entity, sent: Mapping[str, object]) -> str | None:
    """From the protocol's input value; None when a name the kind needs is missing or empty."""
    try:
        return _IDS[kind](_Names(sent))
    except _MissingError:
        return None

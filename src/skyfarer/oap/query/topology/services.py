"""The map of services, out of what clients and what servers saw of the same calls.

Clients come first. What a client called by an address that has turned out to be a service becomes
a call of that service: agents learn such an address late, and what was stored before stays.

A node's type, in the order in which it is told:

    called by a client, and only conjectured    what the client's library is used with
    calls a server, and only conjectured        what the server's component is used with
    calls a server, and is the user             USER
    serves                                      its component; of several the one of the highest
                                                priority, the first of equals
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skyfarer.oap.core import ids
from skyfarer.oap.core.components import component_named, priority_of, server_named
from skyfarer.oap.core.entities import DetectPoint
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Relation
from skyfarer.oap.query.naming import is_real, service_name
from skyfarer.oap.query.topology.drawing import Calls, View

USER = ids.service_id("User", False)
USER_TYPE = "USER"

Layers = Mapping[str, Sequence[str]]
"""Of the services that are known, by id."""


@dataclass
class _Node:
    id: str
    name: str
    real: bool
    layers: Sequence[str]
    type: str | None = None
    served: bool = False

    def serves_with(self, component: int) -> None:
        name = component_named(component)
        if not self.served or self.type is None or _outranks(name, self.type):
            self.type, self.served = name, True

    def view(self) -> View:
        return {
            "id": self.id,
            "name": self.name,
            "type": self.type,
            "isReal": self.real,
            "layers": self.layers,
        }


class ServiceMap:
    """One drawing: clients first, then servers. `aliases` are the services that addresses have
    turned out to be, by address."""

    def __init__(self, layers: Layers, aliases: Mapping[str, str]) -> None:
        self._layers = layers
        self._aliases = aliases
        self._nodes: dict[str, _Node] = {}
        self._calls = Calls()

    def add_clients(self, seen: Iterable[Relation]) -> None:
        for relation in seen:
            source, target = relation.source_id, self._target(relation.dest_id)
            known = target in self._nodes
            node = self._node(target)
            if not known and not node.real and relation.components:
                node.type = server_named(relation.components[0])
            self._node(source)
            names = [component_named(component) for component in relation.components]
            call = self._calls.between(ids.relation_id(source, target), source, target)
            call.seen_at(DetectPoint.CLIENT, names)

    def add_servers(self, seen: Iterable[Relation]) -> None:
        for relation in seen:
            source, target = self._node(relation.source_id), self._node(relation.dest_id)
            for component in relation.components:
                if not source.real:
                    source.type = server_named(component)
                target.serves_with(component)
            if source.id == USER:
                source.type = USER_TYPE
            names = [component_named(component) for component in relation.components]
            call = self._calls.between(relation.id, source.id, target.id)
            call.seen_at(DetectPoint.SERVER, names)

    def tell_types(self, served: Iterable[Relation]) -> None:
        """Of nodes that nothing has told a type of yet: as they serve others."""
        for relation in served:
            node = self._nodes.get(relation.dest_id)
            if node is not None and not node.type and relation.components:
                node.type = component_named(relation.components[0])

    def view(self) -> View:
        return {
            "nodes": [node.view() for node in self._nodes.values()],
            "calls": self._calls.views(),
        }

    def _target(self, identifier: str) -> str:
        alias = self._aliases.get(service_name(identifier))
        return identifier if alias is None else ids.service_id(alias)

    def _node(self, identifier: str) -> _Node:
        known = self._nodes.get(identifier)
        if known is None:
            layers = self._layers.get(identifier) or (Layer.UNDEFINED.name,)
            known = _Node(identifier, service_name(identifier), is_real(identifier), layers)
            self._nodes[identifier] = known
        return known


def _outranks(name: str, current: str) -> bool:
    """What is no component's name is outranked by any that is."""
    standing = priority_of(current)
    return standing is None or standing < (priority_of(name) or 0)

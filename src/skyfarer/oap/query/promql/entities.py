"""Labels of a selector → the entity that a metric is asked of, and back.

`layer` says whether a service is a real one, as it does in its id. Labels that are none of these
are the metric's own (`p='50,99'`), and so may have several values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skyfarer.oap.core.entities import Entity
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.query.expressions.problems import Mistake
from skyfarer.oap.query.promql.syntax import Selector

_INSTANCE: Final = ("service_instance",)
_ENDPOINT: Final = ("endpoint",)
_DEST: Final = ("dest_service", "dest_layer")
LABELS: Final[Mapping[Entity, tuple[str, ...]]] = {
    Entity.SERVICE: ("layer", "service"),
    Entity.INSTANCE: ("layer", "service", *_INSTANCE),
    Entity.ENDPOINT: ("layer", "service", *_ENDPOINT),
    Entity.SERVICE_RELATION: ("layer", "service", *_DEST),
    Entity.INSTANCE_RELATION: (
        *("layer", "service", *_INSTANCE),
        *(*_DEST, "dest_service_instance"),
    ),
    Entity.ENDPOINT_RELATION: ("layer", "service", *_ENDPOINT, *_DEST, "dest_endpoint"),
}
"""All of them are needed."""
GENERAL: Final = tuple(dict.fromkeys(name for names in LABELS.values() for name in names))
_NAMES: Final = {
    "service": "serviceName",
    "service_instance": "serviceInstanceName",
    "endpoint": "endpointName",
    "dest_service": "destServiceName",
    "dest_service_instance": "destServiceInstanceName",
    "dest_endpoint": "destEndpointName",
}
_FLAGS: Final = {"layer": "normal", "dest_layer": "destNormal"}


def general(of: Selector, kind: Entity) -> dict[str, str]:
    """The labels of the entity. Raises a Mistake for one that is missing, or not matched by `=`."""
    found: dict[str, str] = {}
    for matcher in of.matchers:
        if matcher.operator != "=":
            raise Mistake(matcher.place, f"{matcher.key} of a metric is matched by = alone")
        found[matcher.key] = matcher.value
    missing = [name for name in LABELS[kind] if not found.get(name)]
    if missing:
        raise Mistake(of.place, f"{of.name} needs the labels {', '.join(missing)}")
    return {name: found[name] for name in LABELS[kind]}


def entity(labels: Mapping[str, str], of: Selector) -> dict[str, object]:
    """As the query protocol has it. Raises a Mistake for a layer that nobody knows."""
    found: dict[str, object] = {_NAMES[key]: labels[key] for key in labels if key in _NAMES}
    for key, flag in _FLAGS.items():
        if key in labels:
            found[flag] = layer(labels[key], of).normal
    return found


def layer(name: str, of: Selector) -> Layer:
    if name not in Layer.__members__:
        raise Mistake(of.place, f"there is no layer {name!r}; listLayers has the names of all")
    return Layer[name]

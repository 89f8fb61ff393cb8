"""Ids of entities as SQL over the columns of a delta row (`core.entities`), as in `core.ids`.

Part of every id is whether the service is a real one: that follows from its layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skyfarer.oap.core.entities import Entity
from skyfarer.oap.core.ids import BLANK
from skyfarer.oap.core.layers import Layer

_WHITESPACE: Final = "".join(chr(n) for n in range(0x3001) if chr(n).isspace())
_CONJECTURED: Final = ", ".join(str(layer.value) for layer in Layer if not layer.normal)


def named(column: str) -> str:
    """A name as it stands in an id: base64, a blank one as `_blank`."""
    return f"""base64(encode(
        CASE WHEN trim({column}, '{_WHITESPACE}') = '' THEN '{BLANK}' ELSE {column} END))"""


def _service(name: str, layer: str) -> str:
    return f"{named(name)} || CASE WHEN {layer} IN ({_CONJECTURED}) THEN '.0' ELSE '.1' END"


def _part(of_service: str, name: str) -> str:
    return f"{of_service} || '_' || {named(name)}"


REAL_SERVICE_ID: Final = f"{named('service')} || '.1'"
"""Of a segment, which has no layer."""
REAL_INSTANCE_ID: Final = _part(REAL_SERVICE_ID, "instance")
REAL_ENDPOINT_ID: Final = _part(REAL_SERVICE_ID, "endpoint")

SERVICE_ID: Final = _service("service", "layer")
INSTANCE_ID: Final = _part(SERVICE_ID, "instance")
ENDPOINT_ID: Final = _part(SERVICE_ID, "endpoint")
FROM_SERVICE_ID: Final = _service("from_service", "from_layer")
FROM_INSTANCE_ID: Final = _part(FROM_SERVICE_ID, "from_instance")
FROM_ENDPOINT_ID: Final = _part(FROM_SERVICE_ID, "from_endpoint")

ENTITY_ID: Final[Mapping[Entity, str]] = {
    Entity.SERVICE: SERVICE_ID,
    Entity.INSTANCE: INSTANCE_ID,
    Entity.ENDPOINT: ENDPOINT_ID,
    Entity.SERVICE_RELATION: f"{FROM_SERVICE_ID} || '-' || {SERVICE_ID}",
    Entity.INSTANCE_RELATION: f"{FROM_INSTANCE_ID} || '-' || {INSTANCE_ID}",
    Entity.ENDPOINT_RELATION: " || '-' || ".join(
        (FROM_SERVICE_ID, named("from_endpoint"), SERVICE_ID, named("endpoint"))
    ),
}

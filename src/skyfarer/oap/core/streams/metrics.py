"""Metrics: rows that are combined with what is stored under their key.

Of each source of OAL there is one row an entity and time bucket; its other columns are the
accumulators of the plan, which are added as they come (`oap.core.storage.Deltas`). Relations are
down-sampled like these. Traffic and aliases have one row for ever, and are no time series.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from skyfarer.oap.core.entities import ENTITIES, DetectPoint, Entity
from skyfarer.oap.core.streams.declaration import (
    TIME_BUCKET,
    Column,
    ColumnType,
    Index,
    Processor,
    Stream,
)
from skyfarer.oap.core.streams.scopes import Scope

PREFIX: Final = "metrics_"
"""Of the names of all sources' streams."""
_WORDS: Final = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SCOPES: Final[Mapping[Entity, Scope]] = {
    Entity.SERVICE: Scope.SERVICE,
    Entity.INSTANCE: Scope.SERVICE_INSTANCE,
    Entity.ENDPOINT: Scope.ENDPOINT,
    Entity.SERVICE_RELATION: Scope.SERVICE_RELATION,
    Entity.INSTANCE_RELATION: Scope.SERVICE_INSTANCE_RELATION,
    Entity.ENDPOINT_RELATION: Scope.ENDPOINT_RELATION,
}
_ENTITY_BUCKET: Final = (Column("entity_id", ColumnType.TEXT), TIME_BUCKET)
_ID: Final = Column("id", ColumnType.TEXT)
_SERVICE_ID: Final = Column("service_id", ColumnType.TEXT)
_NAME: Final = Column("name", ColumnType.TEXT)
_LAST_PING: Final = Column("last_ping", ColumnType.LONG)


SOURCES: Final[Mapping[str, Stream]] = {
    source: Stream(
        f"{PREFIX}{_WORDS.sub('_', source).lower()}",
        _SCOPES[entity],
        Processor.METRICS,
        key=_ENTITY_BUCKET,
        indexes=(Index("bucket", ("time_bucket",)),),
    )
    for source, entity in ENTITIES.items()
}


def _texts(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, ColumnType.TEXT) for name in names)


_SERVICES: Final = _texts("source_service_id", "dest_service_id")
_INSTANCES: Final = _texts("source_service_instance_id", "dest_service_instance_id")
_ENDPOINTS: Final = _texts("source_endpoint", "dest_endpoint")
_COMPONENTS: Final = Column("component_ids", ColumnType.INTS, required=False)
_COMPONENT: Final = Column("component_id", ColumnType.INT, required=False)

_ENDS: Final = (DetectPoint.SERVER, DetectPoint.CLIENT)
_SEEN: Final = (
    (Entity.SERVICE_RELATION, "service_relation", _ENDS, (*_SERVICES, _COMPONENTS)),
    (Entity.INSTANCE_RELATION, "service_instance_relation", _ENDS, (*_SERVICES, *_INSTANCES)),
    (Entity.ENDPOINT_RELATION, "endpoint_relation", _ENDS[:1], (*_ENDPOINTS, _COMPONENT)),
)
RELATIONS: Final[Mapping[tuple[Entity, DetectPoint], Stream]] = {
    (entity, end): Stream(
        f"{name}_{end.lower()}_side", _SCOPES[entity], Processor.METRICS, _ENTITY_BUCKET, columns
    )
    for entity, name, ends, columns in _SEEN
    for end in ends
}


def _lasting(name: str, scope: Scope, *columns: Column, indexes: tuple[Index, ...] = ()) -> Stream:
    """The first column is the key."""
    key, *others = columns
    return Stream(name, scope, Processor.METRICS, (key,), tuple(others), indexes, precisions=())


_OF_SERVICE: Final = (Index("service_id", ("service_id",)),)
TRAFFIC: Final = (
    _lasting(
        "service_traffic",
        Scope.SERVICE,
        *(_ID, _SERVICE_ID, _NAME, Column("layer", ColumnType.TEXT), TIME_BUCKET),
    ),
    _lasting(
        "instance_traffic",
        Scope.SERVICE_INSTANCE,
        *(_ID, _SERVICE_ID, _NAME, TIME_BUCKET, _LAST_PING),
        Column("properties", ColumnType.TEXT, required=False),
        indexes=_OF_SERVICE,
    ),
    _lasting(
        "endpoint_traffic",
        Scope.ENDPOINT,
        *(_ID, _SERVICE_ID, _NAME, TIME_BUCKET, _LAST_PING),
        indexes=_OF_SERVICE,
    ),
)
NETWORK_ADDRESS_ALIAS: Final = _lasting(
    "network_address_alias",
    Scope.NETWORK_ADDRESS_ALIAS,
    *_texts("address", "represent_service_id", "represent_service_name"),
    *_texts("represent_service_instance_id", "represent_service_instance_name"),
    TIME_BUCKET,
    Column("last_update_time_bucket", ColumnType.LONG),
)

METRICS: Final = (*SOURCES.values(), *RELATIONS.values(), *TRAFFIC, NETWORK_ADDRESS_ALIAS)

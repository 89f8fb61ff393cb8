"""Relations: who called whom, one table a kind, detect point and day, minutes, hours and days.

    service_relation_{server,client}_side_<day>           source_service_id, dest_service_id,
                                                          component_ids
    service_instance_relation_{server,client}_side_<day>  the same ids, and those of the instances
    endpoint_relation_server_side_<day>                   source_endpoint, dest_endpoint,
                                                          component_id

Each also has entity_id and time_bucket, its key. What a relation was seen with adds up for
services; a relation of endpoints keeps the component that was told first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import ENTITIES, DetectPoint, Entity
from skyfarer.oap.core.storage import RELATIONS_MAX, Relation
from skyfarer.oap.core.streams.declaration import Model, model
from skyfarer.oap.core.streams.metrics import RELATIONS
from skyfarer.oap.core.time_bucket import PRECISIONS, days_of
from skyfarer.oap.storage.embedded import models, schema
from skyfarer.oap.storage.entities import (
    ENTITY_IDS,
    FROM,
    endpoints,
    instances,
    services,
)
from skyfarer.oap.storage.merging import Numbers

_MODELS: Final = {seen: model(stream) for seen, stream in RELATIONS.items()}
_Ids: TypeAlias = Callable[[pa.Table, str], pa.Array]
_SERVICES: Final[Mapping[str, tuple[_Ids, str]]] = {
    "source_service_id": (services, FROM),
    "dest_service_id": (services, ""),
}


@dataclass(frozen=True)
class _Shape:
    """`ids`: the first two are what a search goes by, the last two are the ends."""

    ids: Mapping[str, tuple[_Ids, str]]
    told: str = ""  # the column of components, of the rows of a batch
    again: str = "NOTHING"  # what to do when the relation is known
    components: str = "[]::INTEGER[]"


_SHAPES: Final[Mapping[Entity, _Shape]] = {
    Entity.SERVICE_RELATION: _Shape(
        ids=_SERVICES,
        told=", list_sort(list(DISTINCT component)) AS component_ids",
        again="""UPDATE SET component_ids = list_sort(list_distinct(
            list_concat(component_ids, excluded.component_ids)))
            WHERE NOT list_has_all(component_ids, excluded.component_ids)""",
        components="component_ids",
    ),
    Entity.INSTANCE_RELATION: _Shape(
        ids={
            **_SERVICES,
            "source_service_instance_id": (instances, FROM),
            "dest_service_instance_id": (instances, ""),
        }
    ),
    Entity.ENDPOINT_RELATION: _Shape(
        ids={"source_endpoint": (endpoints, FROM), "dest_endpoint": (endpoints, "")},
        told=", min(component) AS component_id",
        components="[component_id]",
    ),
}

SOURCES: Final = frozenset(source for source, entity in ENTITIES.items() if entity in _SHAPES)


class RelationReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def relations(
        self,
        entity: Entity,
        detect_point: DetectPoint,
        start_bucket: int,
        end_bucket: int,
        of: Collection[str] | None = None,
    ) -> list[Relation]:
        days = days_of(start_bucket, end_bucket)
        if (kind := _MODELS.get((entity, detect_point))) is None:
            return []
        with self._reading() as cursor:
            present = schema.present(cursor)
            tables = [table for day in days if (table := kind.of_day(day)) in present]
            if not tables:
                return []
            asked = {"start": start_bucket, "end": end_bucket, "limit": RELATIONS_MAX}
            values = {**asked, "of": None if of is None else list(of)}
            rows = cursor.execute(_selection(entity, tables), values).fetchall()
        return [
            Relation(identifier, source, dest, detect_point, tuple(components))
            for identifier, source, dest, components in rows
        ]


def models_of(source: str) -> list[str]:
    """What a row of that source may be stored in; nothing for what is no relation."""
    return [kind.name for (entity, _), kind in _MODELS.items() if entity is ENTITIES.get(source)]


def store(cursor: duckdb.DuckDBPyConnection, source: str, rows: pa.Table, buckets: Numbers) -> None:
    """Inside the caller's transaction; `buckets` are the minutes of the rows."""
    if source not in SOURCES:
        return
    entity = ENTITIES[source]
    shape = _SHAPES[entity]
    columns = {"entity_id": ENTITY_IDS[entity](rows), "bucket": pa.array(buckets)}
    columns |= {name: made(rows, of) for name, (made, of) in shape.ids.items()}
    columns |= {name: rows[name] for name in ("component", "detect_point")}
    cursor.register("related", pa.table(columns))
    points = set(pc.unique(rows["detect_point"]).to_pylist())
    days = np.unique(buckets // PRECISIONS[-1]).tolist()
    kinds = [(point, kind) for (of, point), kind in _MODELS.items() if of is entity]
    for day, (point, kind) in product(days, kinds):
        if point in points:
            _store(cursor, shape, point, kind, day)


def _store(
    cursor: duckdb.DuckDBPyConnection, shape: _Shape, point: DetectPoint, kind: Model, day: int
) -> None:
    buckets = ", ".join(f"bucket // {one.minute_divisor}" for one in kind.precisions)
    cursor.execute(
        f"""INSERT INTO {models.make(cursor, kind, day)} BY NAME
        SELECT entity_id, time_bucket, {", ".join(shape.ids)}{shape.told}
        FROM (SELECT *, unnest([{buckets}]) AS time_bucket
              FROM related WHERE detect_point = ? AND bucket // 10000 = ?)
        GROUP BY ALL ON CONFLICT DO {shape.again}""",
        [point.value, day],
    )


def _selection(entity: Entity, tables: Iterable[str]) -> str:
    shape = _SHAPES[entity]
    by_source, by_dest, *_ = shape.ids
    *_, source, dest = shape.ids
    days = " UNION ALL ".join(
        f"""SELECT entity_id, {source} AS source, {dest} AS dest, {shape.components} AS components
        FROM {table} WHERE time_bucket BETWEEN $start AND $end AND ($of IS NULL
            OR list_contains($of, {by_source}) OR list_contains($of, {by_dest}))"""
        for table in tables
    )
    return f"""SELECT entity_id, any_value(source), any_value(dest),
        list_sort(list_distinct(flatten(list(components))))
        FROM ({days}) GROUP BY entity_id ORDER BY entity_id LIMIT $limit"""

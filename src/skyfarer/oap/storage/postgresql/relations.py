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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import ENTITIES, DetectPoint, Entity
from skyfarer.oap.core.storage import RELATIONS_MAX, Relation
from skyfarer.oap.core.streams.declaration import Model, model
from skyfarer.oap.core.streams.metrics import RELATIONS
from skyfarer.oap.core.time_bucket import days_of
from skyfarer.oap.storage.buckets import days_in
from skyfarer.oap.storage.entities import ENTITY_IDS, FROM, endpoints, instances, services
from skyfarer.oap.storage.merging import Numbers
from skyfarer.oap.storage.postgresql import copying, models, schema
from skyfarer.oap.storage.postgresql.copying import Cursor

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
    column: str = ""  # of components
    told: str = ""  # that column, of the rows of a batch
    again: str = "NOTHING"  # what to do when the relation is known
    components: str = "'{}'::integer[]"


_SHAPES: Final[Mapping[Entity, _Shape]] = {
    Entity.SERVICE_RELATION: _Shape(
        ids=_SERVICES,
        column=", component_ids",
        told=", array_agg(DISTINCT component)",
        again="""UPDATE SET component_ids = ARRAY(
            SELECT DISTINCT unnest(t.component_ids || excluded.component_ids) ORDER BY 1)
            WHERE NOT t.component_ids @> excluded.component_ids""",
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
        column=", component_id",
        told=", min(component)",
        components="ARRAY[component_id]",
    ),
}

SOURCES: Final = frozenset(source for source, entity in ENTITIES.items() if entity in _SHAPES)


class RelationReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

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


def _sides(
    source: str, rows: pa.Table, buckets: Numbers
) -> Iterator[tuple[DetectPoint, Model, int]]:
    """Detect point, model and day of what the rows of a source tell."""
    points = set(pc.unique(rows["detect_point"]).to_pylist())
    kinds = [(point, kind) for (of, point), kind in _MODELS.items() if of is ENTITIES[source]]
    for day, (point, kind) in product(days_in(buckets), kinds):
        if point in points:
            yield point, kind, day


def tables(source: str, rows: pa.Table, buckets: Numbers) -> dict[str, list[str]]:
    """Table of a day → what makes it."""
    found = dict[str, list[str]]()
    for _, kind, day in _sides(source, rows, buckets) if source in SOURCES else ():
        found |= models.of_day(kind, day)
    return found


def store(cursor: Cursor, source: str, rows: pa.Table, buckets: Numbers) -> None:
    """Inside the caller's transaction, alone; `buckets` are the minutes of the rows."""
    if source not in SOURCES:
        return
    entity = ENTITIES[source]
    shape = _SHAPES[entity]
    columns = {"entity_id": ENTITY_IDS[entity](rows), "bucket": pa.array(buckets)}
    columns |= {name: made(rows, of) for name, (made, of) in shape.ids.items()}
    columns |= {name: rows[name] for name in ("component", "detect_point")}
    copying.bring(cursor, "related", pa.table(columns))
    for point, kind, day in _sides(source, rows, buckets):
        _store(cursor, shape, point, kind, day)


def _store(cursor: Cursor, shape: _Shape, point: DetectPoint, kind: Model, day: int) -> None:
    buckets = ", ".join(f"bucket / {one.minute_divisor}" for one in kind.precisions)
    ids = ", ".join(shape.ids)
    ends = ", ".join(f"min({name})" for name in shape.ids)
    cursor.execute(
        f"""INSERT INTO {kind.of_day(day)} AS t (entity_id, time_bucket, {ids}{shape.column})
        SELECT entity_id, time_bucket, {ends}{shape.told}
        FROM pg_temp.related, unnest(ARRAY[{buckets}]) AS time_bucket
        WHERE detect_point = %s AND bucket / 10000 = %s
        GROUP BY entity_id, time_bucket ORDER BY entity_id, time_bucket
        ON CONFLICT (entity_id, time_bucket) DO {shape.again}""",
        [point.value, day],
        prepare=False,
    )


def _selection(entity: Entity, tables: Iterable[str]) -> str:
    shape = _SHAPES[entity]
    by_source, by_dest, *_ = shape.ids
    *_, source, dest = shape.ids
    days = " UNION ALL ".join(
        f"""SELECT entity_id, {source} AS source, {dest} AS dest, {shape.components} AS components
        FROM {table} WHERE time_bucket BETWEEN %(start)s AND %(end)s AND (%(of)s::text[] IS NULL
            OR {by_source} = ANY(%(of)s::text[]) OR {by_dest} = ANY(%(of)s::text[]))"""
        for table in tables
    )
    return f"""WITH found AS ({days}),
        seen AS (SELECT entity_id, array_agg(DISTINCT component ORDER BY component) AS components
            FROM found, unnest(components) AS component GROUP BY entity_id)
        SELECT entity_id, min(source), min(dest), coalesce(min(seen.components), '{{}}')
        FROM found LEFT JOIN seen USING (entity_id)
        GROUP BY entity_id ORDER BY entity_id LIMIT %(limit)s"""

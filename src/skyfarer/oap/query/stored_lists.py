"""Entities by a metric, and records, by name: what the older root fields have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import Entity
from skyfarer.oap.core.slow import SlowStatement
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query import limits
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions import ranking
from skyfarer.oap.query.expressions.catalogue import Catalogue, Derived, MetricsType, Sampled
from skyfarer.oap.query.expressions.owners import name_of, owner_of
from skyfarer.oap.query.expressions.ranking import Top


@dataclass(frozen=True)
class Ranked:
    id: str
    name: str
    value: int


def top(condition: Mapping[str, Any]) -> Top:
    """Of the protocol's topN and order."""
    limit: int = condition["topN"]
    if limit > limits.TOP_N_MAX:
        raise QueryError(f"a list has at most {limits.TOP_N_MAX} entries, not {limit}")
    return Top(max(limit, 0), condition["order"] == "ASC")


class StoredLists:
    """Any thread; blocks on storage. What does not exist, and what is told by half, has none."""

    def __init__(self, reader: Reader, catalogue: Catalogue, zone: tzinfo) -> None:
        self._reader = reader
        self._catalogue = catalogue
        self._zone = zone

    def entities(
        self, name: str, service: str | None, normal: bool | None, top: Top, duration: Duration
    ) -> list[Ranked]:
        """Of all services, or parts of the one of that name."""
        if service is None:
            return self.parts(name, None, top, duration)
        if normal is None:
            return []
        return self.parts(name, ids.service_id(service, normal), top, duration)

    def parts(
        self,
        name: str,
        service_id: str | None,
        top: Top,
        duration: Duration,
        kind: Entity | None = None,
    ) -> list[Ranked]:
        """Of all services, or of the one with that id; with a `kind`, only a metric of it."""
        of, window = self._catalogue.find(name), duration.window(self._zone)
        if not isinstance(of, Derived) or of.type is not MetricsType.REGULAR_VALUE:
            return []
        if not top.limit or (kind is not None and of.kind is not kind):
            return []
        found = ranking.ranked(self._reader, of, window, top, service_id)
        owners = ((entity, owner_of(of.kind, entity), value) for entity, value in found)
        return [
            Ranked(entity, name_of(owner, service_id is None), value)
            for entity, owner, value in owners
        ]

    def records(
        self, name: str, service_id: str | None, top: Top, duration: Duration
    ) -> list[SlowStatement]:
        of = self._catalogue.find(name)
        if not isinstance(of, Sampled) or service_id is None or not top.limit:
            return []
        return ranking.sampled(self._reader, of, service_id, duration.seconds, top)

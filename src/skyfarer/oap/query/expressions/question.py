"""What one expression is asked about: an entity and a time, and how to read what storage has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property

from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.oal.series import Labels
from skyfarer.oap.query.durations import Duration, minutes_of
from skyfarer.oap.query.entities import entity_id
from skyfarer.oap.query.expressions import ranking, reading, syntax
from skyfarer.oap.query.expressions.catalogue import Catalogue, Derived, Sampled
from skyfarer.oap.query.expressions.owners import name_of, owner_of
from skyfarer.oap.query.expressions.ranking import LayerIs, Top
from skyfarer.oap.query.expressions.results import UNKNOWN, Result, ResultType, Series, Value


@dataclass(frozen=True)
class Question:
    """Blocks on storage, in the caller's thread. Raises what storage raises, and QueryError for
    what cannot be answered."""

    reader: Reader
    catalogue: Catalogue
    entity: Mapping[str, object]
    duration: Duration
    zone: tzinfo

    @property
    def minutes(self) -> int:
        """Of one bucket."""
        return minutes_of(self.duration.step)

    def series(self, node: syntax.Metric, earlier: int = 0) -> Result:
        """Over the time asked for and so many buckets before; UNKNOWN for an entity that lacks a
        name, as in the original."""
        of = self.catalogue.of(node)
        assert isinstance(of, Derived), f"{of.name} has no series, and the checker says so"
        identifier = entity_id(of.kind, self.entity)
        if identifier is None:
            return UNKNOWN
        window = self.duration.window(self.zone, earlier)
        found = reading.values(self.reader, of, identifier, window)
        series = reading.series(of, found, window, lambda labels: _taken(node.labels, labels))
        return Result(ResultType.TIME_SERIES_VALUES, series, of.labelled)

    def top_n(self, node: syntax.TopN) -> Result:
        """Without a serviceName of all services; with one that is told half, of none."""
        of, top = self.catalogue.of(node.metric), Top(node.limit, node.ascending)
        if isinstance(of, Sampled):
            return Result(ResultType.RECORD_LIST, (Series((), self._records(of, top)),))
        return Result(ResultType.SORTED_LIST, (Series((), self._sorted(of, top, node)),))

    def _records(self, of: Sampled, top: Top) -> tuple[Value, ...]:
        if self._service_id is None:
            return ()
        between = self.duration.seconds
        found = ranking.sampled(self.reader, of, self._service_id, between, top)
        return tuple(
            Value(float(one.latency), one.statement, None, one.trace_id or None) for one in found
        )

    def _sorted(self, of: Derived, top: Top, node: syntax.TopN) -> tuple[Value, ...]:
        named = bool(self.entity.get("serviceName"))
        if named and self._service_id is None:
            return ()
        layers = [LayerIs(one.value, one.equal) for one in node.attributes]
        window = self.duration.window(self.zone)
        found = ranking.ranked(self.reader, of, window, top, self._service_id, layers)
        owners = ((owner_of(of.kind, entity), mean) for entity, mean in found)
        return tuple(Value(float(mean), name_of(owner, not named), owner) for owner, mean in owners)

    @cached_property
    def _service_id(self) -> str | None:
        name, normal = self.entity.get("serviceName"), self.entity.get("normal")
        if not isinstance(name, str) or not name or not isinstance(normal, bool):
            return None
        return ids.service_id(name, normal)


def _taken(wanted: tuple[syntax.Label, ...], labels: Labels) -> bool:
    """Several values of one label are alternatives, several labels must all fit; a label without
    a value asks for nothing."""
    asked: dict[str, set[str]] = {}
    for label in wanted:
        if label.values:
            asked.setdefault(label.key, set()).update(label.values)
    found = dict(labels)
    return all(found.get(key) in values for key, values in asked.items())

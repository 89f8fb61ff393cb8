"""Metrics one by one, by name and entity id: what the older root fields have in common.

Values are whole numbers here: what is no whole number is truncated. What is not there is 0 and
says that it is empty; neither a metric nor an entity that does not exist is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from types import NoneType
from typing import Any, Final

from skyfarer.oap.core.storage import Reader
from skyfarer.oap.oal.values import HISTOGRAMS, RANKED, RANKS, Value
from skyfarer.oap.query import limits
from skyfarer.oap.query.durations import Duration, Window
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions import reading
from skyfarer.oap.query.expressions.arithmetic import mean, whole
from skyfarer.oap.query.expressions.catalogue import Catalogue, Derived
from skyfarer.oap.query.labels import WITHOUT_KEY, in_order, labels_of

NO_METRIC: Final = "UNKNOWN_METRIC_NAME"
NO_ENTITY: Final = "ILLEGAL_ENTITY"
"""Instead of an entity's id, in the ids of values that are not there."""
PERCENTILES: Final = frozenset(("percentile", "percentile2"))
HEAT_STEP: Final = 100
HEAT_STEPS_MAX: Final = 20
"""Of a heat map that is made of percentiles: what the original has for its own."""
_WHOLE: Final = frozenset((int, NoneType))


@dataclass(frozen=True)
class Line:
    """A value or None for each point; `ids` are time bucket, `_` and entity id."""

    label: str | None
    ids: tuple[str, ...]
    values: tuple[int | None, ...]


@dataclass(frozen=True)
class Steps:
    """Of a histogram: where each step begins, and of each point how many fell into it."""

    edges: tuple[int, ...]
    ids: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


class StoredValues:
    """Any thread; blocks on storage. An `entity_id` of None is one that was told by half."""

    def __init__(self, reader: Reader, catalogue: Catalogue, zone: tzinfo) -> None:
        self._reader = reader
        self._catalogue = catalogue
        self._zone = zone

    def find(self, name: str) -> Derived | None:
        found = self._catalogue.find(name)
        return found if isinstance(found, Derived) else None

    def line(self, name: str, entity_id: str | None, duration: Duration) -> Line:
        of, window = self.find(name), duration.window(self._zone)
        found = self._values(of, entity_id, window)
        return _line(None, found, _id(of, entity_id), window)

    def average(self, name: str, entity_id: str | None, duration: Duration) -> int | None:
        line = self.line(name, entity_id, duration)
        present = [float(value) for value in line.values if value is not None]
        return whole(mean(present)) if present else None

    def lines(
        self, name: str, entity_id: str | None, labels: Sequence[str], duration: Duration
    ) -> list[Line]:
        """By label; without `labels` those that have a value. Of labels that are mere indexes, and
        of what does not exist, every one that is asked for. QueryError for too many."""
        if len(labels) > limits.LINES_MAX:
            raise QueryError(f"{len(labels)} labels are more than the {limits.LINES_MAX} allowed")
        of, window = self.find(name), duration.window(self._zone)
        if of is None or entity_id is None:
            return [_line(label, {}, _id(of, entity_id), window) for label in labels]
        found = self._values(of, entity_id, window)
        tables = {bucket: value for bucket, value in found.items() if isinstance(value, Mapping)}
        written = {label for table in tables.values() for label in table}
        chosen = _chosen(of, written, [label for label in labels if label])
        reading.check_few(of, len(chosen), window)
        return [
            _line(label, {b: t[key] for b, t in tables.items() if key in t}, entity_id, window)
            for label, key in sorted(chosen.items())
        ]

    def steps(self, name: str, entity_id: str | None, duration: Duration) -> Steps:
        """Without a value in the duration there are no steps; of what does not exist, one. A metric
        of percentiles has them too, since it counts what it is reckoned from by steps."""
        of, window = self.find(name), duration.window(self._zone)
        ids = _ids(_id(of, entity_id), window)
        if of is None or entity_id is None:
            return Steps((0,), ids, ((0,),) * len(ids))
        found = self._histograms(of, entity_id, window)
        tables = map(found.get, window.buckets)
        rows = [table if isinstance(table, Mapping) else {} for table in tables]
        edges = tuple(map(int, in_order({edge for row in rows for edge in row})))
        counts = (tuple(row.get(str(edge), 0) for edge in edges) for row in rows)
        return Steps(edges, ids, tuple(counts))

    def _histograms(self, of: Derived, entity_id: str, window: Window) -> reading.Values:
        if of.metric.function in HISTOGRAMS:
            return self._values(of, entity_id, window)
        if of.metric.function not in PERCENTILES:
            return {}
        counts = reading.values(self._reader, _as_histogram(of), entity_id, window)
        return {bucket: _coarse(table) for bucket, table in counts.items()}

    def _values(self, of: Derived | None, entity_id: str | None, window: Window) -> reading.Values:
        if of is None or entity_id is None:
            return {}
        return reading.values(self._reader, of, entity_id, window)


def _as_histogram(of: Derived) -> Derived:
    """Percentiles keep how often there was which value, by their precision: a histogram of as many
    steps as it takes."""
    return replace(
        of, metric=replace(of.metric, function="histogram", numbers=(*of.metric.numbers, 0))
    )


def _coarse(table: Value) -> dict[str, int]:
    """A histogram of HEAT_STEPS_MAX steps and one without an end, all of them there."""
    assert isinstance(table, Mapping)
    found = {str(step * HEAT_STEP): 0 for step in range(HEAT_STEPS_MAX + 1)}
    for edge, count in table.items():
        step = min(max(int(edge), 0) // HEAT_STEP, HEAT_STEPS_MAX)
        found[str(step * HEAT_STEP)] += count
    return found


def _chosen(of: Derived, written: set[str], asked: Sequence[str]) -> dict[str, str]:
    """As it is shown → as the table has it."""
    shown = {_shown(label): label for label in written}
    if not asked:
        return shown
    if of.metric.function in RANKED:
        shown |= {str(index): f"{{p={rank}}}" for index, rank in enumerate(RANKS)}
    indexed = of.metric.function == "percentile"
    return {label: shown.get(label, label) for label in asked if indexed or label in shown}


def _shown(label: str) -> str:
    """`{p=50}`, `{pipe=native,status=all}`, or the label itself where it has no key."""
    labels = labels_of(label)
    if labels[0][0] == WITHOUT_KEY:
        return label
    return f"{{{','.join(f'{key}={value}' for key, value in labels)}}}"


def _id(of: Derived | None, entity_id: str | None) -> str:
    if of is None:
        return NO_METRIC
    return NO_ENTITY if entity_id is None else entity_id


def _ids(entity_id: str, window: Window) -> tuple[str, ...]:
    return tuple([f"{bucket}_{entity_id}" for bucket in window.buckets])


def _line(label: str | None, found: Mapping[int, Value], entity_id: str, window: Window) -> Line:
    values: list[Any] = list(map(found.get, window.buckets))
    whole_ones = values if _WHOLE.issuperset(map(type, values)) else map(_whole, values)
    return Line(label, _ids(entity_id, window), tuple(whole_ones))


def _whole(value: Value | None) -> int | None:
    if value is None or isinstance(value, int):
        return value
    return None if isinstance(value, Mapping) else whole(value)

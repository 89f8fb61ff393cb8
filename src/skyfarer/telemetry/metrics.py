"""Counters and gauges, kept in memory.

A series is a metric with one value for each of its labels. The number of series of a metric is
bounded by `Metric.series_max`, since label values may come from the wire: beyond it a counter adds
to one last series whose labels are all `other`, so that its sum stays exact, and a gauge is left
out. Either is counted in `telemetry_series_overflow_total`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import Final

from skyfarer.telemetry.exposition import (
    Family,
    Key,
    Snapshot,
    from_snapshot,
    render,
    to_snapshot,
)

log = logging.getLogger(__name__)

SERIES_MAX: Final = 200
OTHER: Final = "other"


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"


UNTYPED: Final = "untyped"


@dataclass(frozen=True)
class Metric:
    """`given_name`: somebody else chose the name, and it breaks a rule that Prometheus has for its
    kind. It is shown without one, which `promtool` takes as it is and `rate` does not mind."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    series_max: int = SERIES_MAX
    given_name: bool = False

    @property
    def shown_kind(self) -> str:
        return UNTYPED if self.given_name else self.kind.value


SERIES_OVERFLOW: Final = Metric(
    "telemetry_series_overflow_total",
    Kind.COUNTER,
    "Updates that found their metric at its bound of series.",
    ("metric",),
)
OBSERVE_FAILURES: Final = Metric(
    "telemetry_observe_failures_total",
    Kind.COUNTER,
    "Values that could not be read when the metrics were asked for.",
    ("metric",),
)


class Registry:
    """The values of one process, plus the last snapshot of each child process.

    Any thread; nothing blocks beyond a short lock. A label name that the metric does not declare,
    or one left out, is a defect of the caller and raises ValueError at once. A `declared` counter
    without labels shows 0 from the start, so that its first failure is a step and not a birth.
    """

    def __init__(self, declared: Iterable[Metric] = ()) -> None:
        self._lock = Lock()
        self._metrics: dict[str, Metric] = {}
        self._values: dict[str, dict[Key, float]] = {}
        self._observers: dict[tuple[str, Key], Callable[[], Mapping[Key, float]]] = {}
        self._children: dict[str, list[Family]] = {}
        for metric in declared:
            series = self._series(metric)
            if not metric.labels and metric.kind is Kind.COUNTER:
                series[()] = 0

    def inc(self, metric: Metric, /, value: float = 1, **labels: str) -> None:
        """Adds to a counter or a gauge."""
        self._update(metric, _key(metric, labels), value, adding=True)

    def set(self, metric: Metric, /, value: float, **labels: str) -> None:
        """Sets a gauge, or a counter whose true value is kept elsewhere (a durable count)."""
        self._update(metric, _key(metric, labels), value, adding=False)

    def value(self, metric: Metric, /, **labels: str) -> float:
        """What was counted or set so far; 0 when nothing was. Not for what is observed."""
        with self._lock:
            return self._values.get(metric.name, {}).get(_key(metric, labels), 0)

    def observe_with(self, metric: Metric, read: Callable[[], float], /, **labels: str) -> None:
        """`read` is called at each scrape, in the scraping thread; the last one given wins."""
        key = _key(metric, labels)
        self._observe(metric, key, lambda: {key: read()})

    def observe_split(
        self, metric: Metric, read: Callable[[], Mapping[str, float]], /, **labels: str
    ) -> None:
        """As `observe_with`, for all values of the one label left out: `read` gives them."""
        left_out = [name for name in metric.labels if name not in labels]
        if len(left_out) != 1:
            raise ValueError(f"{metric.name} needs one of {metric.labels} left out, not {left_out}")
        name = left_out[0]
        family = _key(metric, {**labels, name: ""})

        def read_all() -> dict[Key, float]:
            return {_key(metric, {**labels, name: label}): value for label, value in read().items()}

        self._observe(metric, family, read_all)

    def unobserve(self, **labels: str) -> None:
        """Forgets what was observed under these labels, when its source is gone for good."""
        wanted = labels.items()
        with self._lock:
            for name, key in list(self._observers):
                if wanted <= dict(zip(self._metrics[name].labels, key, strict=True)).items():
                    del self._observers[name, key]

    def merge(self, snapshot: Iterable[Snapshot], source: str = "child") -> None:
        """Takes a child's values in place of all that `source` gave before.

        Equal series are added up, counters and gauges alike: a gauge that may not be added (a
        time, the size of one process) needs a label that tells the processes apart.
        """
        families = [from_snapshot(entry) for entry in snapshot]
        with self._lock:
            self._children[source] = families

    def forget(self, source: str) -> None:
        """Drops what `source` gave, when that process is gone for good."""
        with self._lock:
            self._children.pop(source, None)

    def render(self, constant: Mapping[str, str] | None = None) -> str:
        """Prometheus text, format 0.0.4; `constant` labels stand first in every series."""
        return render(self._families(), constant)

    def snapshot(self) -> list[Snapshot]:
        """Everything `render` would show, as JSON can carry it, for a parent to merge."""
        return [to_snapshot(family) for family in self._families()]

    def _update(self, metric: Metric, key: Key, value: float, adding: bool) -> None:
        with self._lock:
            series = self._series(metric)
            if key not in series and len(series) >= metric.series_max:
                overflow = self._series(SERIES_OVERFLOW)
                overflow[(metric.name,)] = overflow.get((metric.name,), 0) + 1
                if metric.kind is Kind.GAUGE:
                    return
                key = (OTHER,) * len(metric.labels)
                adding = True
            series[key] = series.get(key, 0) + value if adding else value

    def _series(self, metric: Metric) -> dict[Key, float]:
        known = self._metrics.setdefault(metric.name, metric)
        if known is not metric and known != metric:
            raise ValueError(f"metric {metric.name} is declared twice, differently")
        return self._values.setdefault(metric.name, {})

    def _observe(self, metric: Metric, key: Key, read: Callable[[], Mapping[Key, float]]) -> None:
        with self._lock:
            self._series(metric)
            self._observers[metric.name, key] = read

    def _families(self) -> list[Family]:
        observed = self._observed()
        with self._lock:
            families: dict[str, Family] = {}
            for name, metric in self._metrics.items():
                own = {**self._values[name], **observed.get(name, {})}
                families[name] = Family(name, metric.shown_kind, metric.help, metric.labels, own)
            for child in (family for source in self._children.values() for family in source):
                empty = Family(child.name, child.kind, child.help, child.labels)
                families.setdefault(child.name, empty).add(child.series)
        return [families[name] for name in sorted(families)]

    def _observed(self) -> dict[str, dict[Key, float]]:
        """Reads outside the lock: an observer may itself count something."""
        with self._lock:
            observers = list(self._observers.items())
        found: dict[str, dict[Key, float]] = {}
        for (name, _), read in observers:
            try:
                found.setdefault(name, {}).update(read())
            except Exception:
                log.warning("metric %s could not be read", name, exc_info=True)
                self.inc(OBSERVE_FAILURES, metric=name)
        return found


def _key(metric: Metric, labels: Mapping[str, str]) -> Key:
    key = tuple([labels[name] for name in metric.labels if name in labels])
    if len(key) != len(metric.labels) or len(key) != len(labels):
        raise ValueError(f"{metric.name} has labels {metric.labels}, not {tuple(labels)}")
    return key

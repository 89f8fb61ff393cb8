"""PromQL: the part of Prometheus' query API that Grafana and `promtool` need, for these metrics.

Contract: parameters come in as text, what goes out is the `data` of Prometheus' answers. A selector
names the entity by its labels (`service`, `layer`, …) and becomes a metric expression; what cannot
be read or is not supported raises QueryError, with the place.

Must never: be more than a bridge. What expressions cannot do is not done here either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final, TypeAlias, TypeVar

from skyfarer import __version__
from skyfarer.base.clock import Clock
from skyfarer.oap.core.deadline import left_s
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions.catalogue import Catalogue, Derived
from skyfarer.oap.query.expressions.problems import Mistake
from skyfarer.oap.query.expressions.results import Result
from skyfarer.oap.query.promql import answers, entities, traffic
from skyfarer.oap.query.promql.evaluator import Evaluator
from skyfarer.oap.query.promql.parser import NAME, parse, selector
from skyfarer.oap.query.promql.syntax import Node, Selector
from skyfarer.oap.query.promql.times import LOOKBACK_S, between, seconds

__all__ = ["Prometheus"]

A = TypeVar("A")
R = TypeVar("R")
Parameters: TypeAlias = Mapping[str, Sequence[str]]
SPOKEN: Final = "2.42.0"
"""The version of Prometheus whose API this is a part of."""
SERIES_MAX: Final = 100
"""Where no limit is asked for, as in the original."""

DAY_S: Final = 86_400
LISTED_DAYS: Final = 400
"""As far back as series are looked for, however early a client begins."""


class Prometheus:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, catalogue: Catalogue, clock: Clock, zone: tzinfo) -> None:
        self._reader = reader
        self._catalogue = catalogue
        self._clock = clock
        self._zone = zone
        self._traffic = traffic.Traffic(reader)

    def routes(self) -> dict[str, Callable[[Parameters], Any]]:
        return {
            "query": self.query,
            "query_range": self.query_range,
            "series": self.series,
            "labels": self.labels,
            "metadata": self.metadata,
            "query_exemplars": lambda _: [],
            "rules": lambda _: {"groups": []},
            "status/buildinfo": self.build,
        }

    def query(self, asked: Parameters) -> Any:
        """At one time: the latest values of LOOKBACK_S before it; with a range, all of them."""
        at_s = self._time(asked, "time")
        node = _read(parse, _one(asked, "query"))
        range_s = node.range_s if isinstance(node, Selector) else None
        span = between(at_s - (range_s or LOOKBACK_S), at_s, self._zone)
        result = self._evaluated(node, span, range_s is None)
        if range_s is not None:
            return answers.matrix(result, _name(node))
        if answers.is_scalar(result):
            return answers.scalar(result, at_s)
        return answers.vector(result, _name(node))

    def query_range(self, asked: Parameters) -> Any:
        start_s, end_s = seconds(_one(asked, "start"), "start"), seconds(_one(asked, "end"), "end")
        node, span = _read(parse, _one(asked, "query")), between(start_s, end_s, self._zone)
        result = self._evaluated(node, span, False)
        if answers.is_scalar(result):
            points = span.window(self._zone).points
            return answers.constant(result, [point.epoch_ms for point in points])
        return answers.matrix(result, _name(node))

    def series(self, asked: Parameters) -> list[dict[str, str]]:
        found = []
        for text in asked.get("match[]", ()):
            found += self._series(_read(selector, text), asked)
        if not asked.get("match[]"):
            raise QueryError("match[] is missing")
        return found[: _limit(asked)]

    def labels(self, asked: Parameters) -> list[str]:
        """Of the metrics that are named, or of all."""
        names = [_read(selector, text).name for text in asked.get("match[]", ())]
        found = [label for name in names for label in self._labels(name)]
        return list(dict.fromkeys(found if names else entities.GENERAL))[: _limit(asked)]

    def label_values(self, name: str, asked: Parameters) -> list[str]:
        if name == NAME:
            metrics = [one.name for one in self._catalogue if isinstance(one, Derived)]
            return [*metrics, *traffic.LABELS]
        if not asked.get("match[]") and name in ("layer", "dest_layer"):
            return [layer.name for layer in Layer if layer is not Layer.UNDEFINED]
        found: Iterable[str | None] = ()
        for text in asked.get("match[]", ()):
            found = [*found, *self._values(name, _read(selector, text), asked)]
        return list(dict.fromkeys(value for value in found if value is not None))[: _limit(asked)]

    def _values(self, name: str, of: Selector, asked: Parameters) -> list[str | None]:
        """A metric of which not all labels are told has the entities that could have it: so a
        client fills its lists one after another."""
        told, metric = {one.key for one in of.matchers}, self._catalogue.find(of.name)
        listed = traffic.OF.get(name)
        if not isinstance(metric, Derived) or told.issuperset(entities.LABELS[metric.kind]):
            return [one.get(name) for one in self._series(of, asked)]
        if name == "layer":
            return [layer.name for layer in Layer if layer is not Layer.UNDEFINED]
        if listed is None or name not in entities.LABELS[metric.kind]:
            return []
        known = traffic.LABELS[listed]
        if missing := [label for label in known[:-1] if label not in told]:
            raise QueryError(f"the values of {name} need the labels {', '.join(missing)}")
        matchers = tuple(one for one in of.matchers if one.key in known)
        return [
            one.get(name) for one in self._series(Selector(listed, matchers, None, of.place), asked)
        ]

    def metadata(self, asked: Parameters) -> dict[str, Any]:
        wanted, limit = asked.get("metric", [""])[0], _limit(asked, len(list(self._catalogue)))
        names = [one.name for one in self._catalogue if isinstance(one, Derived)]
        chosen = [name for name in names if wanted in ("", name)][:limit]
        return {name: [{"type": "gauge", "help": "", "unit": ""}] for name in chosen}

    def build(self, asked: Parameters) -> dict[str, str]:
        ours = {"revision": f"skyfarer-{__version__}", "branch": "", "buildUser": ""}
        return {"version": SPOKEN, **ours, "buildDate": "", "goVersion": ""}

    def _evaluated(self, node: Node, span: Duration, at_once: bool) -> Result:
        evaluator = Evaluator(self._reader, self._catalogue, self._zone, span, at_once)
        return _read(evaluator.evaluate, node)

    def _series(self, of: Selector, asked: Parameters) -> list[dict[str, str]]:
        left_s()  # names may be known without a read
        end_s = min(self._time(asked, "end"), self._clock.now_ms() / 1000 + DAY_S)
        start_s = self._time(asked, "start") if "start" in asked else end_s - LOOKBACK_S
        span = between(max(start_s, end_s - LISTED_DAYS * DAY_S), end_s, self._zone)
        if of.name in traffic.LABELS:
            minutes, limit = (span.start_minute, span.end_minute), _limit(asked)
            return _read(lambda one: self._traffic.series(one, minutes, limit), of)
        return answers.label_sets(self._evaluated(of, span, False), of.name)

    def _labels(self, name: str) -> tuple[str, ...]:
        found = self._catalogue.find(name)
        if name in traffic.LABELS:
            return traffic.LABELS[name]
        return entities.LABELS[found.kind] if isinstance(found, Derived) else ()

    def _time(self, asked: Parameters, what: str) -> float:
        """Now, where it is not told."""
        given = asked.get(what)
        return seconds(given[0], what) if given else self._clock.now_ms() / 1000


def _one(asked: Parameters, name: str) -> str:
    given = asked.get(name)
    if not given:
        raise QueryError(f"{name} is missing")
    return given[0]


def _limit(asked: Parameters, unless_told: int = SERIES_MAX) -> int:
    given = asked.get("limit", [""])[0]
    if not given:
        return unless_told
    if not given.isdecimal() or len(given) > 6:
        raise QueryError(f"limit is {given[:20]!r}; write a whole number")
    return int(given)


def _name(node: Node) -> str | None:
    """Prometheus drops it from whatever was reckoned."""
    return node.name if isinstance(node, Selector) else None


def _read(call: Callable[[A], R], argument: A) -> R:
    try:
        return call(argument)
    except Mistake as mistake:
        raise QueryError(str(mistake)) from mistake

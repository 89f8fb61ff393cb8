"""What Prometheus' clients ask to fill their lists: services, instances and endpoints as series.

    service_traffic{layer='GENERAL'}
    instance_traffic{layer='GENERAL', service='checkout'}
    endpoint_traffic{layer='GENERAL', service='checkout', keyword='/pay', limit='20'}

The last label of each may be matched in every way, the others by = alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query import limits, patterns
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions.problems import Mistake
from skyfarer.oap.query.promql.entities import layer
from skyfarer.oap.query.promql.syntax import Matcher, Selector

LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "service_traffic": ("layer", "service"),
    "instance_traffic": ("layer", "service", "service_instance"),
    "endpoint_traffic": ("layer", "service", "endpoint"),
}
OF: Final = {names[-1]: name for name, names in LABELS.items()}
"""Of a label what lists its values."""
_SCOPES: Final = {
    "service_traffic": "Service",
    "instance_traffic": "ServiceInstance",
    "endpoint_traffic": "Endpoint",
}
_EXTRA: Final = ("limit", "keyword")
_LIMIT_DIGITS_MAX: Final = 6


class Traffic:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def series(self, of: Selector, between: tuple[int, int], limit: int) -> list[dict[str, str]]:
        """Label sets, the name of the metric in `__name__`; `between` are minute buckets. Raises a
        Mistake."""
        last = LABELS[of.name][-1]
        found = {one.key: one.value for one in of.matchers}
        _check(of, last)
        names = self._names(of, found, between)
        for matcher in of.matchers:
            if matcher.key == last:
                names = _matching(names, matcher)
        bound = min(limit, _number(found.get("limit", ""), limit))
        shared = {key: found[key] for key in LABELS[of.name][:-1]}
        head = {"__name__": of.name, **shared, "scope": _SCOPES[of.name]}
        return [{**head, last: name} for name in names[:bound]]

    def _names(self, of: Selector, found: Mapping[str, str], between: tuple[int, int]) -> list[str]:
        known = layer(found["layer"], of)
        if of.name == "service_traffic":
            return [service.name for service in self._reader.services(known.name)]
        service_id = ids.service_id(found["service"], known.normal)
        if of.name == "instance_traffic":
            return [one.name for one in self._reader.instances(service_id, *between)]
        keyword = found.get("keyword", "")
        endpoints = self._reader.endpoints(service_id, keyword, limits.ENDPOINTS_MAX, between)
        return [one.name for one in endpoints]


def _number(written: str, unless_told: int) -> int:
    """One of more digits bounds nothing that is not bounded already."""
    told = written.isdecimal() and len(written) <= _LIMIT_DIGITS_MAX
    return int(written) if told else unless_told


def _check(of: Selector, last: str) -> None:
    known = (*LABELS[of.name], *_EXTRA)
    for matcher in of.matchers:
        if matcher.key not in known:
            raise Mistake(
                matcher.place, f"{of.name} has no {matcher.key}; it has {', '.join(known)}"
            )
        if matcher.operator != "=" and matcher.key != last:
            raise Mistake(matcher.place, f"{matcher.key} of {of.name} is matched by = alone")
    given = {matcher.key for matcher in of.matchers}
    missing = [name for name in LABELS[of.name][:-1] if name not in given]
    if missing:
        raise Mistake(of.place, f"{of.name} needs the labels {', '.join(missing)}")


def _matching(names: list[str], matcher: Matcher) -> list[str]:
    if matcher.operator in ("=", "!="):
        wanted = [name == matcher.value for name in names]
    else:
        try:
            wanted = patterns.fits(names, matcher.value)
        except QueryError as refusal:
            raise Mistake(matcher.place, str(refusal)) from refusal
    positive = matcher.operator in ("=", "=~")
    return [name for name, fits in zip(names, wanted, strict=True) if fits is positive]

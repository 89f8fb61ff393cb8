"""Labels of a metric's series: as the plan spells them, as a client asks for them.

{p=99}                      a label of a value: key and value; all else is the value of `_`
␟pipe=native␟status=all     several of them, as `oal.series` writes them
service_percentile          every series of the metric
service_percentile{p='50,99'}   those with one of these values; several keys must all fit
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from skyfarer.oap.oal import series
from skyfarer.oap.oal.series import SEPARATOR, Labels

WITHOUT_KEY: Final = "_"
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_METRIC: Final = re.compile(rf"\s*({_NAME})\s*(?:\{{([^{{}}]*)\}}\s*)?")
_LABEL: Final = re.compile(rf"\s*({_NAME})\s*=\s*(?:'([^']*)'|\"([^\"]*)\")\s*(,|\Z)")
_WRITTEN: Final = re.compile(rf"\{{({_NAME})=(.*)\}}", re.DOTALL)
_WHOLE: Final = re.compile("-?[0-9]+")


@dataclass(frozen=True)
class Selection:
    """A metric, and the values of labels that are wanted; none of a key are all of it."""

    metric: str
    wanted: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def takes(self, labels: Labels) -> bool:
        found = dict(labels)
        return all(found.get(key) in values for key, values in self.wanted.items())


def selection(expression: str) -> Selection | None:
    """None when it is anything but a metric's name with or without labels."""
    written = _METRIC.fullmatch(expression)
    if written is None:
        return None
    metric, inside = written.groups()
    wanted = _wanted(inside) if inside and inside.strip() else {}
    return None if wanted is None else Selection(metric, wanted)


def labels_of(written: str) -> Labels:
    """In braces is one label, so a comma or a brace in its value is part of it."""
    if written.startswith(SEPARATOR):
        return series.labels_of(written)
    keyed = _WRITTEN.fullmatch(written)
    return ((keyed[1], keyed[2]) if keyed else (WITHOUT_KEY, written),)


def in_order(written: Iterable[str]) -> list[str]:
    """Numbers by their size, then texts."""

    def rank(label: str) -> tuple[bool, int, str]:
        number = _WHOLE.fullmatch(label) is not None
        return not number, int(label) if number else 0, label

    return sorted(written, key=rank)


def _wanted(inside: str) -> dict[str, frozenset[str]] | None:
    wanted: dict[str, frozenset[str]] = {}
    at, more = 0, True
    while more:
        label = _LABEL.match(inside, at)
        if label is None:
            return None
        values = frozenset(filter(None, map(str.strip, (label[2] or label[3] or "").split(","))))
        if values:
            wanted[label[1]] = wanted.get(label[1], frozenset()) | values
        at, more = label.end(), label[4] == ","
    return wanted

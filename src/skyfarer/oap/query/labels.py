"""Labels of a metric's series, out of how the plan spells them.

{p=99}                      a label of a value: key and value; all else is the value of `_`
␟pipe=native␟status=all     several of them, as `oal.series` writes them
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from skyfarer.oap.oal import series
from skyfarer.oap.oal.series import SEPARATOR, Labels

WITHOUT_KEY: Final = "_"
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_WRITTEN: Final = re.compile(rf"\{{({_NAME})=(.*)\}}", re.DOTALL)
_WHOLE: Final = re.compile("-?[0-9]+")


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

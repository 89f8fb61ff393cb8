"""A series of a meter as one text: the instance that reports it, and its labels by name.

    pod-1 ␟ pipe=native ␟ status=all       without the blanks; ␟ is SEPARATOR, a control character

So a series is the key of a table, and counters of several instances stay apart until they are
read. What is shown then is a text of the same form, without an instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]

SEPARATOR: Final = "\x1f"
CHARS_MAX: Final = 1_000
"""Of a series; a longer one is none."""


def labels_of(series: str) -> Labels:
    _, *written = series.split(SEPARATOR)
    pairs = (label.partition("=") for label in written)
    return tuple((name, value) for name, _, value in pairs)


def shown(series: str, names: Sequence[str]) -> str:
    """The labels of these names; one that the series does not have is empty."""
    found = dict(labels_of(series))
    return "".join(f"{SEPARATOR}{name}={found.get(name, '')}" for name in names)

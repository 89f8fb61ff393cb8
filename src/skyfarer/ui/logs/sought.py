"""What was looked for and not found, in words: whoever reads it knows what to try next."""

from __future__ import annotations

from collections.abc import Sequence

from skyfarer.ui.fields import pairs
from skyfarer.ui.logs.model import LogQuestion
from skyfarer.ui.outside import shown

_WORDS = " A word is found as it is written, also inside of another, in either case."


def nothing_found(asked: LogQuestion) -> str:
    """Names all that was asked for."""
    return f"No log {', '.join(_parts(asked))}."


def advice(asked: LogQuestion) -> str:
    less = "ask for less"
    if asked.wanted or asked.unwanted:
        less = "ask for fewer words" if asked.wanted else "leave fewer words out"
    first = "See that the id is whole" if asked.trace_id else "Look at a longer time"
    return f"{first}, or {less}.{_WORDS if asked.wanted else ''}"


def _parts(asked: LogQuestion) -> list[str]:
    tags = [f"{key}={value}" for key, value in pairs(asked.tags)]
    parts = [
        (asked.service, f"of {_quoted([asked.service])}"),
        (asked.wanted, f"with {_quoted(asked.wanted)}"),
        (asked.unwanted, f"without {_quoted(asked.unwanted, 'or')}"),
        (tags, f"tagged {_quoted(tags)}"),
    ]
    where = f"in the trace {_quoted([asked.trace_id])}" if asked.trace_id else asked.window.words
    return [*(text for given, text in parts if given), where]


def _quoted(texts: Sequence[str], joined: str = "and") -> str:
    return f" {joined} ".join(f"“{shown(text)}”" for text in texts)

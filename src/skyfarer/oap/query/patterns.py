"""Regular expressions of clients, by RE2, which Arrow has: one of Python's could take for ever."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.query import limits
from skyfarer.oap.query.errors import QueryError


def fits(names: Sequence[str], pattern: str) -> list[bool]:
    """Which of them fit it as a whole; QueryError for what is no pattern."""
    if len(pattern) > limits.REGEX_CHARS_MAX:
        raise QueryError(f"a pattern has at most {limits.REGEX_CHARS_MAX} characters")
    try:
        pc.match_substring_regex(pa.array([""]), pattern)  # by itself, before anything is around it
        found = pc.match_substring_regex(pa.array(names, pa.string()), rf"\A(?:{pattern})\z")
    except pa.ArrowInvalid as error:
        raise QueryError(f"{pattern!r} is no regular expression: {error}") from error
    answers: list[bool] = found.to_pylist()
    return answers

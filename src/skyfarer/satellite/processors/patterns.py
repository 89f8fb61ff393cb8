"""Regular expressions that a user wrote, on an engine whose time is linear in the text.

Python's own `re` may take for ever on a pattern such as `(a+)+$`, in the one thread that everything
here shares. RE2 cannot, at the price of look-around and back-references. It comes with the extra
`filters` and is imported with the first pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from skyfarer.base.errors import ConfigError
from skyfarer.base.units import MIB
from skyfarer.satellite.processors.decoding import EXTRA

PATTERN_CHARACTERS_MAX: Final = 1000
_EDGES: Final = frozenset({"^", "$", r"\b", r"\B", r"\A", r"\z"})
_OWN_EDGES: Final = re.compile(r"\\[AzQ]|\(\?(?!:|P?<|i\))")
# An escape, a class in brackets, or a character.
_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\[:[^\]]*:\]|\\.|[^\]\\])*\]|.", re.DOTALL)
MEMORY_BYTES_MAX: Final = 1 * MIB  # of one compiled pattern, its caches included


class Match(Protocol):
    def groupdict(self) -> Mapping[str, str | None]: ...


class Pattern(Protocol):
    """The part of a compiled pattern that filters use."""

    @property
    def groupindex(self) -> Mapping[str, int]: ...

    def search(self, text: str | bytes) -> Match | None: ...

    def subn(self, replacement: Callable[[Any], str], text: str) -> tuple[str, int]: ...


def compile_pattern(pattern: str) -> Pattern:
    """ConfigError for what RE2 does not take, for one too large, and when RE2 is not installed."""
    if not 0 < len(pattern) <= PATTERN_CHARACTERS_MAX:
        raise ConfigError(f"a pattern has from 1 to {PATTERN_CHARACTERS_MAX} characters")
    try:
        import re2
    except ModuleNotFoundError as error:
        raise ConfigError(f"patterns need the module 're2'; install it with: {EXTRA}") from error
    options = re2.Options()
    options.max_mem = MEMORY_BYTES_MAX
    options.log_errors = False
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0]
        text = why.decode() if isinstance(why, bytes) else why
        raise ConfigError(f"pattern {pattern!r} cannot be used: {text}") from error
    return compiled


def without_edges(pattern: str) -> Pattern | None:
    """Matches in any bytes around a text in which `pattern` matches, and maybe elsewhere: it asks
    for the same, but not for the edges of texts, lines and words. None if that says nothing."""
    if "\\Q" in pattern:
        return None
    try:
        weaker = compile_pattern("".join(map(_unedged, _PIECE.findall(pattern))))
    except ConfigError:
        return None
    return None if weaker.search("") is not None else weaker


def line_by_line(pattern: str) -> Pattern | None:
    """Matches in texts joined by newlines if `pattern` does in one of them, and maybe else: its `^`
    and `$` hold at every line, and a newline is no part of a word, as the end of a text is not.
    None for a pattern that knows other edges, or sets for itself what an edge is."""
    return None if _OWN_EDGES.search(pattern) else compile_pattern(f"(?m){pattern}")


def _unedged(piece: str) -> str:
    """Nothing in its place, as a group: a number of repetitions behind it must not become that of
    what stands before it."""
    return "(?:)" if piece in _EDGES else piece

"""Text → tokens. Whitespace and comments, `//` and nested `/* */`, end here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from skyfarer.oap.oal.problems import OalMistake, Place


class Kind(Enum):
    NAME = "a name"
    NUMBER = "a number"
    TEXT = "a text in quotes"
    SIGN = "a sign"
    END = "the end of the file"


@dataclass(frozen=True)
class Token:
    """`text` is what was written, without the quotes of a text."""

    kind: Kind
    text: str
    place: Place

    def __str__(self) -> str:
        return self.kind.value if self.kind is Kind.END else f"'{self.text}'"


_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*)"
    r"|(?P<comment>/\*)"
    r"|(?P<NAME>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<NUMBER>-?[0-9]+(?:\.[0-9]+)?)"
    r'|"(?P<TEXT>[^"\n]*)"'
    r"|(?P<SIGN>->|==|!=|>=|<=|[=<>()\[\],.;*])"
)
_COMMENT = re.compile(r"/\*|\*/")


def tokens(text: str, file: str) -> Iterator[Token]:
    """Always ends with END. Raises OalMistake at what begins no token, and is then finished."""
    lines = _Lines(text, file)
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise OalMistake(lines.place(at), _unreadable(text[at]))
        kind = found.lastgroup
        if kind == "comment":
            at = _after_comment(text, at, lines)
            continue
        if kind is not None and kind != "space":
            yield Token(Kind[kind], found[kind], lines.place(at))
        at = found.end()
    yield Token(Kind.END, "", lines.place(at))


def _unreadable(character: str) -> str:
    if character == '"':
        return "this text has no closing quote on its line"
    return f"{character!r} has no meaning here"


def _after_comment(text: str, begin: int, lines: _Lines) -> int:
    depth = 0
    for mark in _COMMENT.finditer(text, begin):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise OalMistake(lines.place(begin), "this comment is never closed; end it with '*/'")


class _Lines:
    """Asked with positions that only grow, so the text is walked once."""

    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._line, self._line_begin = 1, 0

    def place(self, at: int) -> Place:
        while (end := self._text.find("\n", self._line_begin, at)) >= 0:
            self._line, self._line_begin = self._line + 1, end + 1
        return Place(self._file, self._line, at - self._line_begin + 1)

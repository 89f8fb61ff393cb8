"""Text → tokens. Blanks and line breaks end here.

A name may begin with a digit (`5xx_count`), so a number is a word that has nothing but digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from skyfarer.oap.query import limits
from skyfarer.oap.query.expressions.problems import Mistake, Place


class Kind(Enum):
    NAME = "a name"
    WHOLE = "a whole number"
    DECIMAL = "a number"
    TEXT = "a text in quotes"
    SIGN = "a sign"
    END = "the end of the expression"


@dataclass(frozen=True)
class Token:
    """`text` is what was written, without the quotes of a text."""

    kind: Kind
    text: str
    place: Place

    def __str__(self) -> str:
        return self.kind.value if self.kind is Kind.END else f"'{self.text[:_SHOWN_CHARS]}'"


_SHOWN_CHARS: Final = 40
_COMMON: Final = (
    r"(?P<blank>[ \t\r\n]+)"
    r"|(?P<DECIMAL>[0-9]+\.[0-9]+(?![A-Za-z0-9_.]))"
    r"|(?P<WHOLE>[0-9]+(?![A-Za-z0-9_]))"
    r"|(?P<NAME>[A-Za-z0-9_]+)"
    r"|'(?P<single>[^']*)'"
    r'|"(?P<double>[^"]*)"'
)
MQE: Final = re.compile(_COMMON + r"|(?P<SIGN>==|!=|<=|>=|&&|\|\||[-+*/%<>=(){},])")
PROMQL: Final = re.compile(_COMMON + r"|(?P<SIGN>==|!=|<=|>=|=~|!~|[-+*/%<>=(){},\[\]])")
"""The signs that each of the two languages has."""
_KINDS: Final = {"single": Kind.TEXT, "double": Kind.TEXT} | {
    name: Kind[name] for name in ("DECIMAL", "WHOLE", "NAME", "SIGN")
}


def tokens(text: str, language: re.Pattern[str] = MQE) -> list[Token]:
    """Always ends with END. Raises a Mistake at what begins no token."""
    if len(text) > limits.EXPRESSION_CHARS_MAX:
        raise Mistake(
            Place(1, 1),
            f"the expression has {len(text)} characters, more than the "
            f"{limits.EXPRESSION_CHARS_MAX} allowed; ask for its parts one by one",
        )
    found, at = [], 0
    while at < len(text):
        match = language.match(text, at)
        if match is None:
            raise Mistake(_place(text, at), _unreadable(text[at]))
        group = match.lastgroup or "blank"
        if group != "blank":
            found.append(Token(_KINDS[group], match[group], _place(text, at)))
        at = match.end()
    return [*found, Token(Kind.END, "", _place(text, at))]


def _place(text: str, at: int) -> Place:
    return Place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _unreadable(character: str) -> str:
    if character in "'\"":
        return f"this text has no closing {character}"
    if character in "&|":
        return f"{character!r} has no meaning here; 'and' is &&, 'or' is ||"
    if character in "[]":
        return f"{character!r} has no meaning here; lists are written without brackets"
    return f"{character!r} has no meaning here"

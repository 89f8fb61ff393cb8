"""Tokens → paths, values and comparisons: the half of the grammar inside parentheses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from skyfarer.base.binding import nearest
from skyfarer.oap.oal.lexer import Kind, Token
from skyfarer.oap.oal.problems import OalMistake, Place
from skyfarer.oap.oal.syntax import (
    Argument,
    Comparison,
    EnumValue,
    ListValue,
    Literal,
    Part,
    Path,
    Value,
)

OPERATORS: Final = ("==", "!=", ">", "<", ">=", "<=", "like", "in", "contain", "not contain")
WORDS: Final = {"true": True, "false": False, "null": None}
CASTS: Final = {"long": "long", "int": "int", "str->long": "long", "str->int": "int"}
LONG_MAX: Final = 2**63 - 1


class Expressions:
    """Every method reads what its name says from `now` on, or raises OalMistake there."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def now(self) -> Token:
        return self._tokens[self._at]

    def at(self, sign: str) -> bool:
        return self.now.kind is Kind.SIGN and self.now.text == sign

    def word(self, text: str) -> bool:
        return self.now.kind is Kind.NAME and self.now.text == text

    def next_is(self, text: str) -> bool:
        return self.now.kind is not Kind.END and self._tokens[self._at + 1].text == text

    def advance(self) -> Token:
        token = self.now
        if token.kind is not Kind.END:
            self._at += 1
        return token

    def sign(self, text: str) -> None:
        if not self.at(text):
            raise OalMistake(self.now.place, f"'{text}' is expected here, not {self.now}")
        self.advance()

    def name(self, what: str) -> Token:
        if self.now.kind is not Kind.NAME:
            raise OalMistake(self.now.place, f"{what} is expected here, not {self.now}")
        return self.advance()

    def text(self, what: str) -> str:
        if self.now.kind is not Kind.TEXT:
            raise OalMistake(self.now.place, f"{what} is expected here, not {self.now}")
        return self.advance().text

    def cast(self) -> str | None:
        """`(long)` and `(str->long)`, `(int)` and `(str->int)`, or none."""
        if not self.at("("):
            return None
        self.advance()
        first = self.name("the type of a cast")
        written = first.text
        if self.at("->"):
            self.advance()
            written += "->" + self.name("the type of a cast").text
        if written not in CASTS:
            raise OalMistake(first.place, f"there is no cast '{written}'{nearest(written, CASTS)}")
        self.sign(")")
        return CASTS[written]

    def path(self) -> Path:
        place, cast = self.now.place, self.cast()
        return Path(self.parts(), cast, place)

    def parts(self) -> tuple[Part, ...]:
        parts = [self._part()]
        while self.at("."):
            self.advance()
            parts.append(self._part())
        return tuple(parts)

    def _part(self) -> Part:
        name = self.name("an attribute")
        key = None
        if self.at("["):
            self.advance()
            key = self.text("a key in quotes")
            self.sign("]")
        return Part(name.text, key, name.place)

    def argument(self) -> Argument:
        if self._begins_literal():
            return self._literal()
        path = self.path()
        return path if self.at(",") or self.at(")") else self.comparison(path)

    def comparison(self, left: Path) -> Comparison:
        place = self.now.place
        operator = self._operator()
        return Comparison(left, operator, self._value(), place)

    def _operator(self) -> str:
        token = self.now
        if token.kind is Kind.NAME and token.text == "not" and self.next_is("contain"):
            self.advance()
            self.advance()
            return "not contain"
        if token.kind not in (Kind.NAME, Kind.SIGN) or token.text not in OPERATORS:
            hint = nearest(token.text, OPERATORS)
            raise OalMistake(token.place, f"a comparison is expected here, not {token}{hint}")
        return self.advance().text

    def _value(self) -> Value:
        if not self.at("["):
            return self._item()
        place = self.advance().place
        items = [self._item()]
        while self.at(","):
            self.advance()
            items.append(self._item())
        self.sign("]")
        return ListValue(tuple(items), place)

    def _item(self) -> Literal | EnumValue:
        if self._begins_literal():
            return self._literal()
        what = "a value: a number, a text in quotes, true, false, null or Enum.NAME,"
        type_ = self.name(what)
        if not self.at("."):
            raise OalMistake(type_.place, f"{what} is expected here, not {type_}")
        self.advance()
        return EnumValue(type_.text, self.name("the name of a value").text, type_.place)

    def _begins_literal(self) -> bool:
        if self.now.kind is Kind.NAME:
            return self.now.text in WORDS and not self.next_is(".")
        return self.now.kind in (Kind.NUMBER, Kind.TEXT)

    def _literal(self) -> Literal:
        token = self.advance()
        if token.kind is Kind.TEXT:
            return Literal(token.text, token.place)
        if token.kind is Kind.NAME:
            return Literal(WORDS[token.text], token.place)
        return Literal(_number(token.text, token.place), token.place)


def _number(text: str, place: Place) -> int | float:
    # No number of a metric is longer; and Python is slow to read one of a million digits.
    if len(text) > len(str(-LONG_MAX)) or ("." not in text and abs(int(text)) > LONG_MAX):
        raise OalMistake(place, "this number does not fit into 64 bits")
    return float(text) if "." in text else int(text)

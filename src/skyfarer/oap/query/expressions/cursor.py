"""A walk along the tokens of an expression, with the small parts that all of them are made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from skyfarer.base.binding import nearest
from skyfarer.oap.query import limits
from skyfarer.oap.query.expressions.lexer import Kind, Token
from skyfarer.oap.query.expressions.problems import Mistake, Place
from skyfarer.oap.query.expressions.syntax import Label

_DIGITS_MAX = 9
_ORDERS = ("asc", "des")


class Cursor:
    """`tokens` end with END, which is never passed."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def now(self) -> Token:
        return self._tokens[self._at]

    def advance(self) -> Token:
        token = self.now
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def at(self, *signs: str) -> bool:
        return self.now.kind is Kind.SIGN and self.now.text in signs

    def next_is(self, sign: str) -> bool:
        after = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        return after.kind is Kind.SIGN and after.text == sign

    def word(self, word: str) -> bool:
        return self.now.kind is Kind.NAME and self.now.text.lower() == word

    def sign(self, sign: str) -> Place:
        if not self.at(sign):
            raise self.expected(f"'{sign}'")
        return self.advance().place

    def name(self, what: str) -> Token:
        if self.now.kind is not Kind.NAME:
            raise self.expected(what)
        return self.advance()

    def one_of(self, words: Collection[str], what: str) -> str:
        """A word in any case, in small letters."""
        token = self.name(what)
        if token.text.lower() not in words:
            raise Mistake(
                token.place, f"{what} is expected here, not {token}{nearest(token.text, words)}"
            )
        return token.text.lower()

    def ascending(self) -> bool:
        return self.one_of(_ORDERS, "asc or des") == "asc"

    def whole(self, what: str) -> int:
        """Small enough for any bound: whoever asks has one of its own."""
        if self.now.kind is not Kind.WHOLE:
            raise self.expected(f"{what}, a whole number")
        token = self.advance()
        return int(token.text) if len(token.text) <= _DIGITS_MAX else 10**_DIGITS_MAX

    def limit(self) -> int:
        """How many of a list."""
        place, limit = self.now.place, self.whole("how many")
        if not 1 <= limit <= limits.TOP_N_MAX:
            raise Mistake(place, f"a list has 1 to {limits.TOP_N_MAX} entries; ask for as many")
        return limit

    def text(self, what: str) -> str:
        if self.now.kind is not Kind.TEXT:
            raise self.expected(what)
        return self.advance().text

    def label(self) -> Label:
        """`p='50,99'`; blanks around values and empty values do not count."""
        key = self.name("the name of a label").text
        self.sign("=")
        text = self.text("the label's values in quotes, as in p='50,99'")
        return Label(key, tuple(filter(None, map(str.strip, text.split(",")))))

    def label_names(self) -> tuple[str, ...]:
        """At least one."""
        names = [self.name("the name of a label").text]
        while self.at(","):
            self.advance()
            names.append(self.name("the name of a label").text)
        return tuple(names)

    def expected(self, what: str) -> Mistake:
        return Mistake(self.now.place, f"{what} is expected here, not {self.now}")

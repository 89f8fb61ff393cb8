"""PromQL → syntax: selectors, arithmetic, comparisons and aggregations over labels.

What Prometheus has besides (functions, offsets, subqueries, vector matching, powers, `and`, `or`,
`unless`) is refused where it stands.
"""

from __future__ import annotations

import re
from typing import Final

from skyfarer.oap.query import limits
from skyfarer.oap.query.expressions.calls import OVER_LABELS
from skyfarer.oap.query.expressions.cursor import Cursor
from skyfarer.oap.query.expressions.lexer import PROMQL, Kind, tokens
from skyfarer.oap.query.expressions.problems import Mistake
from skyfarer.oap.query.expressions.syntax import COMPARISONS, PRODUCTS, SUMS
from skyfarer.oap.query.promql.syntax import Aggregate, Binary, Matcher, Node, Scalar, Selector

NAME: Final = "__name__"
"""The label that has the name of the metric."""
_ROWS: Final = (COMPARISONS, SUMS, PRODUCTS)
_MATCHES: Final = ("=", "!=", "=~", "!~")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"([0-9]{1,9})([smhdw])")


def parse(text: str) -> Node:
    """Raises a Mistake."""
    parser = _Parser(tokens(text, PROMQL))
    found = parser.expression()
    if parser.now.kind is not Kind.END:
        raise parser.expected("an operator, or the end of the expression,")
    return found


def selector(text: str) -> Selector:
    """Of a `match[]`. Raises a Mistake."""
    found = parse(text)
    if not isinstance(found, Selector):
        raise Mistake(found.place, "a selector is expected, as in service_traffic{layer='GENERAL'}")
    return found


class _Parser(Cursor):
    _depth = 0
    _parts = 0

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > limits.EXPRESSION_DEPTH_MAX:
            raise Mistake(
                self.now.place,
                f"the expression nests more than {limits.EXPRESSION_DEPTH_MAX} levels deep",
            )
        found = self._row(0)
        self._depth -= 1
        return found

    def _row(self, row: int) -> Node:
        if row == len(_ROWS):
            return self._operand()
        left = self._row(row + 1)
        while self.at(*_ROWS[row]):
            operator = self.advance()
            as_bool = operator.text in COMPARISONS and self.word("bool")
            if as_bool:
                self.advance()
            left = Binary(operator.text, left, self._row(row + 1), as_bool, operator.place)
        return left

    def _operand(self) -> Node:
        token = self.now
        self._parts += 1
        if self._parts > limits.EXPRESSION_METRICS_MAX:
            raise Mistake(
                token.place,
                f"the expression has more than {limits.EXPRESSION_METRICS_MAX} parts; "
                "ask for them one by one",
            )
        if token.kind in (Kind.WHOLE, Kind.DECIMAL):
            self.advance()
            return Scalar(float(token.text), token.place)
        if self.at("-"):
            self.advance()
            return Binary("-", Scalar(0.0, token.place), self._operand(), False, token.place)
        if self.at("("):
            return self._inside()
        if token.text in OVER_LABELS and token.kind is Kind.NAME:
            return self._aggregate()
        return self._selector()

    def _inside(self) -> Node:
        self.sign("(")
        found = self.expression()
        self.sign(")")
        return found

    def _aggregate(self) -> Node:
        """The labels stand before the parentheses or after them."""
        function = self.advance()
        names, by = self._grouping() or (None, True)
        of = self._inside()
        if names is None:
            names, by = self._grouping() or ((), True)
        return Aggregate(function.text, of, names, by, function.place)

    def _grouping(self) -> tuple[tuple[str, ...], bool] | None:
        if not (self.word("by") or self.word("without")):
            return None
        by = self.advance().text.lower() == "by"
        self.sign("(")
        names = () if self.at(")") else self.label_names()
        self.sign(")")
        return names, by

    def _selector(self) -> Selector:
        place, name = self.now.place, self._name()
        matchers = self._matchers() if self.at("{") else []
        for one in [one for one in matchers if one.key == NAME]:
            if one.operator != "=" or name:
                raise Mistake(one.place, f"a metric is named once, by its name or by {NAME}=")
            name = one.value
            matchers.remove(one)
        if not name:
            raise Mistake(place, f"a selector needs the name of a metric, or {NAME}=")
        range_s = self._range_s() if self.at("[") else None
        return Selector(name, tuple(matchers), range_s, place)

    def _name(self) -> str:
        if self.at("{"):
            return ""
        name = self.name("a metric, a number, or one of sum, avg, min, max")
        if self.at("("):
            raise Mistake(name.place, f"there is no function {name}; there are sum, avg, min, max")
        return name.text

    def _matchers(self) -> list[Matcher]:
        """A comma may stand behind the last."""
        self.sign("{")
        found: list[Matcher] = []
        while not self.at("}"):
            found.append(self._matcher())
            if not self.at("}"):
                self.sign(",")
        self.advance()
        return found

    def _matcher(self) -> Matcher:
        key = self.name("the name of a label")
        if not self.at(*_MATCHES):
            raise self.expected(f"one of {', '.join(_MATCHES)}")
        operator = self.advance().text
        return Matcher(key.text, operator, self.text("a text in quotes"), key.place)

    def _range_s(self) -> int:
        self.sign("[")
        token = self.name("a duration, as in [5m],")
        found = _DURATION.fullmatch(token.text)
        if found is None:
            raise Mistake(token.place, f"{token} is no duration; write 30s, 5m, 2h, 1d or 1w")
        self.sign("]")
        return int(found[1]) * _UNITS_S[found[2]]

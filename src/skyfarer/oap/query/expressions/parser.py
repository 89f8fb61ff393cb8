"""Tokens → syntax, by recursive descent: a row of `syntax.PRECEDENCE` at a time.

The first mistake ends it: an expression is one line in a box, not a file. How deep it nests and how
much it has is bounded here, so that nothing that walks the tree later can run out of stack.
"""

from __future__ import annotations

from functools import lru_cache

from skyfarer.base.binding import nearest
from skyfarer.oap.query import limits
from skyfarer.oap.query.expressions.calls import FUNCTIONS, Calls
from skyfarer.oap.query.expressions.lexer import Kind, tokens
from skyfarer.oap.query.expressions.problems import Mistake
from skyfarer.oap.query.expressions.syntax import (
    COMPARISONS,
    PRECEDENCE,
    Binary,
    Expression,
    Label,
    Metric,
    Number,
)


def parse(text: str) -> Expression:
    """Raises a Mistake."""
    parser = _Parser(tokens(text))
    found = parser.expression()
    if parser.now.kind is not Kind.END:
        raise parser.expected("an operator, or the end of the expression,")
    return found


@lru_cache(limits.EXPRESSIONS_REMEMBERED_MAX)
def _remembered(text: str) -> Expression:
    return parse(text)


def parsed(text: str) -> Expression:
    """As `parse`, which pages ask for again and again: trees are never changed."""
    return _remembered(text) if len(text) <= limits.EXPRESSION_REMEMBERED_CHARS_MAX else parse(text)


class _Parser(Calls):
    _depth = 0
    _operators = 0
    _metrics = 0

    def expression(self) -> Expression:
        self._depth += 1
        if self._depth > limits.EXPRESSION_DEPTH_MAX:
            raise Mistake(
                self.now.place,
                f"the expression nests more than {limits.EXPRESSION_DEPTH_MAX} levels deep; "
                "ask for its parts one by one",
            )
        found = self._row(0)
        self._depth -= 1
        return found

    def _row(self, row: int) -> Expression:
        if row == len(PRECEDENCE):
            return self._operand()
        left = self._row(row + 1)
        while self.at(*PRECEDENCE[row]):
            operator = self.advance()
            self._count_operator()
            if operator.text in COMPARISONS and self.word("bool"):
                self.advance()  # Prometheus has it; here a comparison is never anything else
            left = Binary(operator.text, left, self._row(row + 1), operator.place)
        return left

    def _operand(self) -> Expression:
        token = self.now
        if token.kind in (Kind.WHOLE, Kind.DECIMAL):
            self.advance()
            return Number(float(token.text), token.place)
        if self.at("("):
            self.advance()
            inside = self.expression()
            self.sign(")")
            return inside
        if self.at("-", "+"):
            raise Mistake(token.place, f"a number has no sign; write it as 0 {token.text} ...")
        if token.kind is Kind.NAME and self.next_is("("):
            return self._call()
        return self.metric()

    def _call(self) -> Expression:
        name = self.advance()
        if name.text not in FUNCTIONS:
            hint = nearest(name.text, FUNCTIONS)
            raise Mistake(name.place, f"there is no function {name}{hint}")
        self._count_operator()
        self.sign("(")
        found = FUNCTIONS[name.text](self, name)
        self.sign(")")
        return found

    def metric(self) -> Metric:
        name = self.name("a metric, a function or a number")
        self._metrics += 1
        if self._metrics > limits.EXPRESSION_METRICS_MAX:
            raise Mistake(
                name.place,
                f"the expression has more than {limits.EXPRESSION_METRICS_MAX} metrics; "
                "ask for its parts one by one",
            )
        return Metric(name.text, self._labels() if self.at("{") else (), name.place)

    def _labels(self) -> tuple[Label, ...]:
        self.advance()
        labels: list[Label] = []
        while not self.at("}"):
            if labels:
                self.sign(",")
            labels.append(self.label())
        self.advance()
        return tuple(labels)

    def _count_operator(self) -> None:
        self._operators += 1
        if self._operators > limits.EXPRESSION_OPERATIONS_MAX:
            raise Mistake(
                self.now.place,
                f"the expression has more than {limits.EXPRESSION_OPERATIONS_MAX} operators and "
                "functions; ask for its parts one by one",
            )

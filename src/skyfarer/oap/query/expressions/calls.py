"""The functions of the language: how the arguments of each are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from skyfarer.oap.query import limits
from skyfarer.oap.query.expressions import syntax
from skyfarer.oap.query.expressions.cursor import Cursor
from skyfarer.oap.query.expressions.lexer import Kind, Token
from skyfarer.oap.query.expressions.problems import Mistake

AGGREGATIONS: Final = ("avg", "count", "latest", "sum", "max", "min")
OVER_LABELS: Final = ("avg", "sum", "max", "min")
BOUNDS: Final = ("value", "upper", "lower")
ATTRIBUTES: Final = tuple(f"attr{number}" for number in range(6))


class Calls(Cursor, ABC):
    """Each method reads what stands between a function's parentheses; `name` is its token."""

    @abstractmethod
    def expression(self) -> syntax.Expression: ...

    @abstractmethod
    def metric(self) -> syntax.Metric: ...

    def aggregate(self, name: Token) -> syntax.Expression:
        return syntax.Aggregate(name.text, self.expression(), name.place)

    def mathematical(self, name: Token) -> syntax.Expression:
        return syntax.Mathematical(name.text, self.expression(), 0, name.place)

    def round(self, name: Token) -> syntax.Expression:
        of = self.expression()
        self.sign(",")
        place, places = self.now.place, self.whole("how many decimals")
        if places > limits.ROUND_PLACES_MAX:
            raise Mistake(place, f"round to at most {limits.ROUND_PLACES_MAX} decimals")
        return syntax.Mathematical(name.text, of, places, name.place)

    def trend(self, name: Token) -> syntax.Expression:
        metric = self.metric()
        self.sign(",")
        place, steps = self.now.place, self.whole("how many steps to look back")
        if steps < 1:
            raise Mistake(place, f"{name.text} looks back at least 1 step")
        return syntax.Trend(name.text, metric, steps, name.place)

    def top_n(self, name: Token) -> syntax.TopN:
        metric = self.metric()
        self.sign(",")
        limit = self.limit()
        self.sign(",")
        ascending, attributes = self.ascending(), []
        while self.at(","):
            self.advance()
            attributes.append(self._attribute())
        return syntax.TopN(metric, limit, ascending, tuple(attributes), name.place)

    def _attribute(self) -> syntax.Attribute:
        place = self.now.place
        name = self.one_of(ATTRIBUTES, "an attribute, attr0 to attr5,")
        if not self.at("=", "!="):
            raise self.expected("'=' or '!='")
        equal = self.advance().text == "="
        value = self.text("the attribute's value in quotes, as in attr0='GENERAL'")
        return syntax.Attribute(name, equal, value, place)

    def top_n_of(self, name: Token) -> syntax.Expression:
        lists = [self._nested_top_n()]
        self.sign(",")
        while self.now.kind is Kind.NAME:
            lists.append(self._nested_top_n())
            self.sign(",")
        limit = self.limit()
        self.sign(",")
        return syntax.TopNOf(tuple(lists), limit, self.ascending(), name.place)

    def _nested_top_n(self) -> syntax.TopN:
        name = self.now
        self.one_of(("top_n",), "top_n(...)")
        self.sign("(")
        found = self.top_n(name)
        self.sign(")")
        return found

    def relabels(self, name: Token) -> syntax.Expression:
        of = self.expression()
        self.sign(",")
        place, target = self.now.place, self.label()
        self.sign(",")
        replacement = self.label()
        had, has = len(target.values), len(replacement.values)
        if had and has and had != has:
            raise Mistake(place, f"{had} values of '{target.key}' cannot become {has}; write {had}")
        return syntax.Relabels(of, target, replacement, name.place)

    def aggregate_labels(self, name: Token) -> syntax.Expression:
        of = self.expression()
        self.sign(",")
        function = self.one_of(OVER_LABELS, f"one of {', '.join(OVER_LABELS)}")
        names: tuple[str, ...] = ()
        if self.at("("):
            self.advance()
            names = self.label_names()
            self.sign(")")
        return syntax.AggregateLabels(of, function, names, name.place)

    def sort_values(self, name: Token) -> syntax.Expression:
        """The limit and the aggregation may be left out: older versions had not always both."""
        of = self.expression()
        self.sign(",")
        limit = None
        if self.now.kind is Kind.WHOLE:
            limit = self.limit()
            self.sign(",")
        ascending, by = self.ascending(), "avg"
        if self.at(","):
            self.advance()
            by = self.one_of(AGGREGATIONS, f"one of {', '.join(AGGREGATIONS)}")
        return syntax.SortValues(of, limit, ascending, by, name.place)

    def sort_label_values(self, name: Token) -> syntax.Expression:
        of = self.expression()
        self.sign(",")
        ascending = self.ascending()
        self.sign(",")
        return syntax.SortLabelValues(of, ascending, self.label_names(), name.place)

    def view_as_seq(self, name: Token) -> syntax.Expression:
        return syntax.FirstPresent(self._choices(), name.place)

    def is_present(self, name: Token) -> syntax.Expression:
        return syntax.IsPresent(self._choices(), name.place)

    def _choices(self) -> tuple[syntax.Expression, ...]:
        choices = [self.expression()]
        while self.at(","):
            self.advance()
            choices.append(self.expression())
        return tuple(choices)

    def baseline(self, name: Token) -> syntax.Expression:
        metric = self.metric()
        self.sign(",")
        bound = self.one_of(BOUNDS, f"one of {', '.join(BOUNDS)}")
        return syntax.Baseline(metric, bound, name.place)


Call: TypeAlias = Callable[[Calls, Token], syntax.Expression]
FUNCTIONS: Final[Mapping[str, Call]] = {
    **dict.fromkeys(AGGREGATIONS, Calls.aggregate),
    **dict.fromkeys(("abs", "ceil", "floor"), Calls.mathematical),
    "round": Calls.round,
    **dict.fromkeys(("increase", "rate"), Calls.trend),
    "top_n": Calls.top_n,
    "top_n_of": Calls.top_n_of,
    **dict.fromkeys(("relabels", "relabel"), Calls.relabels),  # the grammar has one, its page both
    "aggregate_labels": Calls.aggregate_labels,
    "sort_values": Calls.sort_values,
    "sort_label_values": Calls.sort_label_values,
    "view_as_seq": Calls.view_as_seq,
    "is_present": Calls.is_present,
    "baseline": Calls.baseline,
}

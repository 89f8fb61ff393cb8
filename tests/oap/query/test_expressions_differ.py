"""The evaluator against a plain one, on expressions and values that nobody thought of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden.mqe.plain import EARLIER, Lines, Plain, World, evaluate, same
from skyfarer.oap.core import ids
from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.oap.oal.series import SEPARATOR
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.expressions import Expressions
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.expressions.parser import parse
from skyfarer.oap.query.expressions.results import Result, ResultType
from skyfarer.testing.memory_reader import MemoryReader, row_of

PLAN = plan_of(
    [
        Text(
            "differ.oal",
            """
            one = from(Service.latency).sum();
            two = from(Service.latency).filter(status == true).sum();
            table = from(Service.*).labelCount(endpointName);
            pipes = from(ServiceMeter.value).filter(meter == "m")
                .labelTotal(series, "pipe, status");
            """,
        )
    ]
)
CATALOGUE = Catalogue(PLAN)
SHOP = {"serviceName": "shop", "normal": True}
POINTS = 4
DURATION = Duration.of({"start": "2026-11-15 0803", "end": "2026-11-15 0806", "step": "MINUTE"})
FIRST = 202611150803 - EARLIER
TABLE = tuple((("n", name),) for name in ("a", "b", "c"))
PIPES = tuple((("pipe", p), ("status", s)) for p in ("x", "y") for s in ("all", "bad"))

LENGTH = EARLIER + POINTS
numbers = st.none() | st.integers(-9, 9) | st.integers(-(10**12), 10**12)
lines = st.one_of(
    st.lists(numbers, min_size=LENGTH, max_size=LENGTH),
    st.lists(st.integers(-3, 3), min_size=LENGTH, max_size=LENGTH),
    st.just([None] * LENGTH),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    def some(labels: tuple[Any, ...]) -> Lines:
        return [(one, draw(lines)) for one in labels if draw(st.integers(0, 3))]

    return {
        "one": (False, [((), draw(lines))]),
        "two": (False, [((), draw(lines))]),
        "table": (True, some(TABLE)),
        "pipes": (True, some(PIPES)),
    }


def reader_of(world: World) -> MemoryReader:
    reader, shop = MemoryReader(), ids.service_id("shop")
    for point in range(EARLIER + POINTS):
        plain: dict[str, Any] = {
            name: {"value": line[point]}
            for name in ("one", "two")
            for _, line in world[name][1]
            if line[point] is not None
        }
        table = {k[0][1]: line[point] for k, line in world["table"][1] if line[point] is not None}
        if table:
            plain["table"] = {"dataset": table}
        reader.put("Service", shop, FIRST + point, row_of(PLAN, **plain))
        series = {
            SEPARATOR.join(["pod", *(f"{key}={value}" for key, value in k)]): line[point]
            for k, line in world["pipes"][1]
            if line[point] is not None
        }
        if series:
            counts = dict.fromkeys(series, 1)
            row = row_of(PLAN, pipes={"summation": series, "count": counts})
            reader.put("ServiceMeter", shop, FIRST + point, row)
    return reader


order = st.sampled_from(["asc", "des"])
selected = st.sampled_from(
    [
        *("table", "table{n='a,b'}", "table{n='c', n='a'}", "table{n='nobody'}"),
        *("pipes", "pipes{}", "pipes{pipe='x'}", "pipes{status='bad,all', pipe='y'}"),
    ]
)
plain_metric = st.sampled_from(["one", "two"])
comparison = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
name_lists = st.sampled_from(["n", "pipe", "status", "pipe, status", "status, pipe", "nothing"])


def over_time(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    function = st.sampled_from(["avg", "count", "latest", "sum", "max", "min"])
    return st.builds("{}({})".format, function, of)


def grown(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    steps = st.integers(1, EARLIER)
    return st.builds("{}({}, {})".format, st.sampled_from(["increase", "rate"]), of, steps)


def changed(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}({})".format, st.sampled_from(["abs", "ceil", "floor"]), of),
        st.builds("round({}, {})".format, of, st.integers(0, 3)),
    )


def in_order(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    limit = st.sampled_from(["", "1, ", "2, "])
    by = st.sampled_from(["", ", sum", ", max", ", min", ", count"])
    return st.one_of(
        st.builds("sort_values({}, {}{}{})".format, of, limit, order, by),
        st.builds("sort_label_values({}, {}, {})".format, of, order, name_lists),
    )


def first_present(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("view_as_seq({}, {})".format, of, of)


def alike(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """What keeps the type, and whether there are labels."""
    return changed(of) | in_order(of) | first_present(of)


def joined(left: st.SearchStrategy[str], right: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sign = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds("({} {} {})".format, left, sign, right),
        st.builds("{} {} {}".format, left, st.sampled_from(["+", "-", "*", "/", "%"]), right),
        st.builds(
            "({} {} {} {} {} {} {})".format,
            *(left, comparison, right, st.sampled_from(["&&", "||"]), left, comparison, right),
        ),
    )


def with_labels(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    renamed = st.sampled_from(["n='a,b', n='z,y'", "n='a', m='a'", "pipe='x,y', pipe='p,p'"])
    return st.builds("relabels({}, {})".format, of, renamed)


def merged(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    function = st.sampled_from(["avg", "sum", "max", "min"])
    names = st.sampled_from(["", "(n)", "(pipe)", "(status, n)", "(nothing)"])
    return st.builds("aggregate_labels({}, {}{})".format, of, function, names)


@dataclass(frozen=True)
class Kinds:
    """Expressions by type: series and single values, without labels and with."""

    series: st.SearchStrategy[str]
    labelled: st.SearchStrategy[str]
    single: st.SearchStrategy[str]
    labelled_single: st.SearchStrategy[str]

    @property
    def any(self) -> st.SearchStrategy[str]:
        return st.one_of(self.series, self.labelled, self.single, self.labelled_single)


LEAVES = Kinds(
    plain_metric | grown(plain_metric),
    selected | grown(selected),
    st.sampled_from(["0", "1", "2", "7", "0.5", "1000", "3.75"]),
    over_time(selected),
)


def deeper(less: Kinds) -> Kinds:
    labels = less.labelled | less.labelled_single
    return Kinds(
        less.series | alike(less.series) | joined(less.series, less.series | less.single),
        less.labelled | alike(less.labelled) | joined(less.labelled, less.any),
        less.single | over_time(less.series) | joined(less.single, less.single),
        less.labelled_single | over_time(less.labelled) | joined(less.labelled_single, labels),
    )


PARTS = deeper(LEAVES)
ROOTS = {
    "trend": grown(plain_metric | selected),
    "aggregation": over_time(PARTS.series | PARTS.labelled),
    "function": changed(PARTS.any),
    "operator": joined(PARTS.any, PARTS.any),
    "operator between labels": joined(PARTS.labelled, PARTS.labelled | PARTS.labelled_single),
    "order": in_order(PARTS.labelled | PARTS.labelled_single),
    "labels": with_labels(PARTS.labelled | PARTS.labelled_single),
    "labels merged": merged(with_labels(PARTS.labelled) | PARTS.labelled),
    "view_as_seq": first_present(PARTS.any),
    "is_present": st.builds("is_present({}, {})".format, PARTS.any, PARTS.any),
}


def assert_same(text: str, found: Result, expected: Plain) -> None:
    assert found.error is None, f"{text}: {found.error}"
    single = found.type is ResultType.SINGLE_VALUE
    assert (single, found.labelled) == (expected.single, expected.labelled), text
    assert [one.labels for one in found.series] == [labels for labels, _ in expected.lines], text
    for one, (labels, line) in zip(found.series, expected.lines, strict=True):
        values = [value.number for value in one.values]
        assert len(values) == len(line), f"{text}: {labels}"
        assert all(map(same, values, line)), f"{text}: {labels}: {values} and not {line}"


@pytest.mark.parametrize("root", ROOTS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), world=worlds())
def test_an_expression_comes_to_what_a_plain_evaluator_says(
    root: str, data: st.DataObject, world: World
) -> None:
    text = data.draw(ROOTS[root])
    found = Expressions(reader_of(world), CATALOGUE, UTC).evaluate(text, SHOP, DURATION)
    assert_same(text, found, evaluate(parse(text), world))


def test_the_comparison_sees_a_wrong_value() -> None:
    world: World = {name: (False, [((), [1.0] * 7)]) for name in ("one", "two")} | {
        name: (True, []) for name in ("table", "pipes")
    }
    found = Expressions(reader_of(world), CATALOGUE, UTC).evaluate("one + two", SHOP, DURATION)
    assert_same("one + two", found, evaluate(parse("one + two"), world))
    with pytest.raises(AssertionError, match="and not"):
        assert_same("one + two", found, evaluate(parse("one - two"), world))

"""Lists against plain ones, on entities, layers and values that nobody thought of."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden.mqe.plain import same
from golden.mqe.plain_lists import Entries, Town, Who, entries
from skyfarer.oap.core import ids
from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.expressions import Expressions
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.expressions.parser import parse
from skyfarer.oap.query.expressions.results import Result, ResultType
from skyfarer.testing.memory_reader import MemoryReader, row_of

PLAN = plan_of(
    [
        Text(
            "lists.oal",
            """
            one = from(Service.latency).sum().decorator("ServiceDecorator");
            two = from(Service.latency).filter(status == true).sum()
                .decorator("ServiceDecorator");
            part = from(Endpoint.latency).sum().decorator("EndpointDecorator");
            """,
        )
    ]
)
CATALOGUE = Catalogue(PLAN)
DURATION = Duration.of({"start": "2026-11-15 0803", "end": "2026-11-15 0806", "step": "MINUTE"})
FIRST, POINTS = 202611150803, 4
SERVICES = ("a", "b", "c", "d")
LAYERS = ("GENERAL", "MESH")

numbers = st.none() | st.integers(-4, 4) | st.integers(-(10**12), 10**12)
lines = st.lists(numbers, min_size=POINTS, max_size=POINTS)


def id_of(who: Who) -> str:
    service, endpoint = who
    of = ids.service_id(service)
    return ids.endpoint_id(of, endpoint) if endpoint else of


@st.composite
def towns(draw: st.DrawFn) -> Town:
    names = draw(st.lists(st.sampled_from(SERVICES), min_size=1, unique=True))
    parts = [(name, f"{name}-{n}") for name in names for n in range(draw(st.integers(0, 2)))]
    whose = {"one": [(name, "") for name in names], "two": [(name, "") for name in names]}
    values = {
        metric: {who: draw(lines) for who in them}
        for metric, them in (whose | {"part": parts}).items()
    }
    layer = st.lists(st.sampled_from(LAYERS), min_size=1, unique=True)
    layers = {name: tuple(draw(layer)) for name in names}
    return Town(values, layers, {who: id_of(who) for them in values.values() for who in them})


def reader_of(town: Town) -> MemoryReader:
    reader = MemoryReader()
    for name, layers in town.layers.items():
        reader.add_service(name, layers)
    for who in {who for them in town.values.values() for who in them}:
        for point in range(POINTS):
            row = {
                metric: {"value": them[who][point]}
                for metric, them in town.values.items()
                if who in them and them[who][point] is not None
            }
            source = "Endpoint" if who[1] else "Service"
            reader.put(source, town.ids[who], FIRST + point, row_of(PLAN, **row))
    return reader


order = st.sampled_from(["asc", "des"])
limit = st.integers(1, 5)
attribute = st.sampled_from(
    ["", "", ", attr0='GENERAL'", ", attr0!='MESH'", ", attr0='MESH', attr0='GENERAL'"]
)


def top_n(metric: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("top_n({}, {}, {}{})".format, metric, limit, order, attribute)


def top_n_of(metric: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    some = st.lists(top_n(metric), min_size=1, max_size=4).map(", ".join)
    return st.builds("top_n_of({}, {}, {})".format, some, limit, order)


def reckoned(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    number = st.sampled_from(["0", "1", "7", "0.5", "100"])
    sign = st.sampled_from(["+", "-", "*", "/", "%", ">", "<=", "=="])
    return st.one_of(
        st.builds("({} {} {})".format, of, sign, number),
        st.builds("({} {} {})".format, number, sign, of),
        st.builds("{}({})".format, st.sampled_from(["abs", "ceil", "floor"]), of),
        st.builds("round({}, {})".format, of, st.integers(0, 3)),
    )


METRICS = st.sampled_from(["one", "two"])
PARTS = st.just("part")
LISTS = st.one_of(top_n(METRICS), top_n(PARTS), top_n_of(METRICS), top_n_of(PARTS))
ROOTS = {
    "top_n": top_n(METRICS | PARTS),
    "top_n_of": top_n_of(METRICS) | top_n_of(PARTS),
    "reckoned with": reckoned(LISTS) | reckoned(reckoned(LISTS)),
}


def assert_same(text: str, found: Result, expected: Entries) -> None:
    assert (found.type, found.error) == (ResultType.SORTED_LIST, None), f"{text}: {found.error}"
    (series,) = found.series
    shown = [(v.owner.service, v.owner.endpoint or "") for v in series.values if v.owner]
    assert shown == [who for who, _ in expected], text
    for value, (who, number) in zip(series.values, expected, strict=True):
        assert same(value.number, number), f"{text}: {who}: {value.number} and not {number}"


@pytest.mark.parametrize("root", ROOTS)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), town=towns(), of=st.none() | st.sampled_from(SERVICES))
def test_a_list_has_the_entries_that_a_plain_one_has(
    root: str, data: st.DataObject, town: Town, of: str | None
) -> None:
    text = data.draw(ROOTS[root])
    entity = {} if of is None else {"serviceName": of, "normal": True}
    found = Expressions(reader_of(town), CATALOGUE, UTC).evaluate(text, entity, DURATION)
    assert_same(text, found, entries(parse(text), town, of))


def test_the_comparison_sees_a_wrong_order() -> None:
    whose: list[Who] = [("a", ""), ("b", "")]
    values = {"one": {whose[0]: [1.0] * POINTS, whose[1]: [2.0] * POINTS}}
    town = Town(values, {"a": ("GENERAL",), "b": ("GENERAL",)}, {who: id_of(who) for who in whose})
    ask = Expressions(reader_of(town), CATALOGUE, UTC).evaluate
    found = ask("top_n(one, 2, des)", {}, DURATION)
    assert_same("des", found, entries(parse("top_n(one, 2, des)"), town, None))
    with pytest.raises(AssertionError):
        assert_same("asc", found, entries(parse("top_n(one, 2, asc)"), town, None))

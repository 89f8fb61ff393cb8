"""Every function over rows: OAL, rows, value; with the original's check vectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.oal.compiler import Text, plan_of, shipped
from skyfarer.oap.oal.functions import FUNCTIONS
from skyfarer.oap.oal.interpreter import Row, accumulate, merge, values
from skyfarer.oap.oal.plan import SourcePlan
from skyfarer.oap.oal.series import SEPARATOR
from skyfarer.oap.oal.values import Value, truncated, value_of


def plan(text: str) -> SourcePlan:
    (source,) = plan_of([Text("test.oal", text)]).sources
    return source


def evaluated(definition: str, rows: list[Row], minutes: int = 1) -> Value | None:
    source = plan(f"m = {definition};")
    return values(source, accumulate(source, rows), minutes).get("m")


def latencies(*numbers: int, **others: object) -> list[Row]:
    return [{"latency": number, **others} for number in numbers]


def readings(*told: tuple[str, int]) -> list[Row]:
    return [{"series": apart(series), "value": value} for series, value in told]


def counted(*told: tuple[str | None, int]) -> list[Row]:
    return [{"bucket": bucket, "count": count} for bucket, count in told]


def apart(text: str) -> str:
    """The separator as it can be seen, replaced by the real one."""
    return text.replace("␟", SEPARATOR)


def labelled(found: tuple[int, ...]) -> dict[str, int]:
    return {f"{{p={rank}}}": v for rank, v in zip((50, 75, 90, 95, 99), found, strict=True)}


LATENCY = "from(Service.latency)"
OK = {"status": True}
LOWEST = str(-(2**63))
VECTORS: list[tuple[str, list[Row], Value | None]] = [
    (
        f"{LATENCY}.percentile2(10)",
        latencies(110, 90, 95, 99, 50, 50, 50, 50, 50, 75, 75),
        labelled((70, 90, 90, 90, 110)),
    ),
    (f"{LATENCY}.percentile2(10)", latencies(90, 110), labelled((90, 110, 110, 110, 110))),
    (
        f"{LATENCY}.percentile(10)",
        latencies(90, 110),
        {"0": 90, "1": 110, "2": 110, "3": 110, "4": 110},
    ),
    (f"{LATENCY}.apdex(name, status)", latencies(200, **OK), 10000),
    (f"{LATENCY}.apdex(name, status)", latencies(1000, 2000, **OK), 5000),
    (f"{LATENCY}.apdex(name, status)", latencies(200, **OK) + latencies(1500), 5000),
    (f"{LATENCY}.apdex(name, status)", latencies(500, 501, 2000, 2001, **OK), 5000),
    ("from(Service.*).percent(status == true)", [OK, {}, {}], 3333),
    ("from(Service.*).percent(status == true)", [OK, OK, {}], 6666),
    (f"{LATENCY}.longAvg()", latencies(1, 2, 2), 1),
    (f"{LATENCY}.longAvg()", latencies(-3, -4), -3),
    (f"{LATENCY}.longAvg()", latencies(1, 0), 0),
    (f"{LATENCY}.avg()", latencies(1, 0), 1),
    (f"{LATENCY}.avg()", latencies(0, 0), 0),
    (f"{LATENCY}.avg()", latencies(-1, 0), 0),
    (f"{LATENCY}.avg()", latencies(3, 4), 3),
    (f"{LATENCY}.doubleAvg()", latencies(1, 2), 1.5),
    (f"{LATENCY}.sum()", latencies(0, 0), 0),
    (f"{LATENCY}.sumPerMin()", latencies(7, 5), 12),
    (f"{LATENCY}.max()", latencies(-5, -1), 0),
    (f"{LATENCY}.max()", latencies(3, 7, 5), 7),
    (f"{LATENCY}.min()", latencies(3, 7, -5), -5),
    ("from(ServiceInstanceJVMCPU.usePercent).maxDouble()", [{"usePercent": 0.5}], 0.5),
    ("from(ServiceInstanceJVMCPU.usePercent).maxDouble()", [{"usePercent": -0.5}], 0.0),
    ("from(ServiceInstanceJVMCPU.usePercent).minDouble()", [{"usePercent": 0.5}, {}], 0.0),
    (
        f"{LATENCY}.histogram(100, 3)",
        latencies(0, 99, 100, 300, 5000),
        {"0": 2, "100": 1, "200": 0, "300": 2},
    ),
    (
        "from(BrowserAppResourcePerf.*).labelCount(protocol, 2)",
        [{"protocol": p} for p in ("h2", "h3", "h2", "http/1.1", None)],
        {"{n=h2}": 2, "{n=h3}": 1},
    ),
    (
        "from(BrowserAppResourcePerf.*).labelCount(protocol, 2)",
        [{"protocol": p} for p in ("c", "b", "a", "b")],
        {"{n=a}": 1, "{n=b}": 2},
    ),
    (
        "from(BrowserAppResourcePerf.*).labelAvg(name, size)",
        [{"name": "a", "size": 5}, {"name": "a", "size": 4}, {"name": "b", "size": 1}]
        + [{"name": "b"}] * 2
        + [{"name": "c"}],
        {"{n=a}": 4, "{n=b}": 1, "{n=c}": 0},
    ),
    (
        "from(Service.*).rate(latency > 1, latency == 1)",
        latencies(1, 1, 1, 2),
        3333,
    ),
    ("from(Service.*).rate(latency > 1, latency == 1)", latencies(5), 0),
    (
        'from(ServiceMeter.value).labelIncrease(series, "pipe")',
        readings(("a␟pipe=x␟type=1", 5), ("a␟pipe=x␟type=1", 7), ("b␟pipe=y", 1), ("b␟pipe=y", 0)),
        {"␟pipe=x": 2, "␟pipe=y": 1},
    ),
    (
        'from(ServiceMeter.value).labelIncrease(series, "pipe", 1)',
        [*readings(("a␟pipe=x", 3), ("b␟pipe=y", 1), ("a␟pipe=x", 4)), {"value": 9}],
        {"␟pipe=x": 1},
    ),
    (
        'from(ServiceMeter.value).labelTotal(series, "pipe, no")',
        readings(("a␟part=0␟pipe=x", 4), ("a␟part=0␟pipe=x", 7), ("a␟part=1␟pipe=x", 1), ("b", 3)),
        {"␟pipe=x␟no=": 6, "␟pipe=␟no=": 3},
    ),
    (
        'from(ServiceMeter.value).labelSum(series, "pipe")',
        readings(("a␟pipe=x␟type=1", 5), ("a␟pipe=x␟type=2", 7), ("b␟pipe=x", 1), ("b␟pipe=y", 0)),
        {"␟pipe=x": 13, "␟pipe=y": 0},
    ),
    (
        'from(ServiceMeter.value).labelSumPerMin(series, "pipe", 2)',
        [*readings(("a␟pipe=x", 5), ("b␟pipe=x", 7), ("c␟pipe=x", 1)), {"value": 9}],
        {"␟pipe=x": 12},
    ),
    (
        'from(ServiceMeter.value).labelMax(series, "pipe")',
        readings(("a␟pipe=x␟type=1", 5), ("a␟pipe=x␟type=2", 7), ("b␟pipe=x", 1), ("b␟pipe=y", 0)),
        {"␟pipe=x": 7, "␟pipe=y": 0},
    ),
    (
        'from(ServiceMeter.value).labelMin(series, "pipe, no")',
        readings(("a␟pipe=x␟type=1", 5), ("a␟pipe=x␟type=2", 7), ("b␟pipe=x", 2), ("b␟pipe=y", 0)),
        {"␟pipe=x␟no=": 2, "␟pipe=y␟no=": 0},
    ),
    (
        "from(InstanceHistogram.count).sumHistogram(bucket)",
        counted(("0", 3), ("10", 0), ("0", 2), ("none", 7), (None, 7)),
        {"0": 5, "10": 0},
    ),
    (
        "from(InstanceHistogram.count).sumHistogram(bucket, 1)",
        counted(("0", 3), ("10", 4)),
        {"0": 3},
    ),
    (
        "from(InstanceHistogram.count).avgHistogram(bucket)",
        counted(("0", 3), ("0", 4), ("10", 1), ("10", 0), ("20", 0), (LOWEST, 2)),
        {"0": 3, "10": 1, "20": 0, LOWEST: 2},
    ),
    (
        "from(InstanceHistogram.count).sumHistogramPercentile(bucket)",
        counted(("50", 5), ("70", 2), ("90", 3), ("110", 1)),
        labelled((70, 90, 90, 90, 110)),
    ),
    (
        "from(InstanceHistogram.count).sumHistogramPercentile(bucket)",
        counted(("-50", 1), ("5", 1), ("x", 100)),
        labelled((-50, 5, 5, 5, 5)),
    ),
    (
        "from(InstanceHistogram.count).sumHistogramPercentile(bucket)",
        counted((LOWEST, 1), ("5", 0), ("8", 1)),
        labelled((5, 8, 8, 8, 8)),
    ),
    (
        "from(InstanceHistogram.count).sumHistogramPercentile(bucket)",
        counted((LOWEST, 1)),
        labelled((0, 0, 0, 0, 0)),
    ),
    (
        "from(InstanceHistogram.count).sumHistogramPercentile(bucket)",
        counted(("5", 0)),
        labelled((0, 0, 0, 0, 0)),
    ),
    (
        "from(InstanceHistogram.count).avgHistogramPercentile(bucket)",
        counted(("0", 9), ("0", 8), ("10", 1), ("10", 0)),
        labelled((0, 0, 0, 10, 10)),
    ),
    ("from(InstanceHistogram.count).avgHistogramPercentile(bucket)", [], None),
    (f"{LATENCY}.increase()", latencies(7, 12, 9), 5),
    (f"{LATENCY}.increase()", latencies(7), 0),
    ("from(Service.*).count()", [{}, {}], 2),
    ("from(Service.*).cpm()", [{}, {}], 2),
    # no item of the metric at all is no value, which 0 is
    (f"{LATENCY}.filter(latency > 5).sum()", latencies(1), None),
    ("from(Service.*).filter(latency > 5).percent(status == true)", latencies(1), None),
    # texts read as numbers
    (
        'from((str->long)Service.tag["x"]).longAvg()',
        [{"tag": {"x": text}} for text in ("4", "+8", "-0", "", "x", "1.5", "9" * 30, "٣")] + [{}],
        4,
    ),
    ('from((int)Service.tag["x"]).max()', [{"tag": {"x": "2147483648"}}], None),
    ('from((int)Service.tag["x"]).max()', [{"tag": {"x": "2147483647"}}], 2147483647),
]


@pytest.mark.parametrize(("definition", "rows", "expected"), VECTORS)
def test_vector(definition: str, rows: list[Row], expected: Value | None) -> None:
    if isinstance(expected, dict):
        expected = {apart(label): number for label, number in expected.items()}
    assert evaluated(definition, rows) == expected


def test_every_function_has_a_vector() -> None:
    assert {name for name in FUNCTIONS if not any(f".{name}(" in v[0] for v in VECTORS)} == set()


def test_growth_is_since_the_bucket_before_or_since_a_counter_began_anew() -> None:
    source = plan(f"m = {LATENCY}.increase();")
    (metric,) = source.metrics
    of = {n: accumulate(source, latencies(*numbers)) for n, numbers in enumerate([(7, 9), (12,)])}
    assert value_of(metric, of[1], 1, of[0]) == 3
    assert value_of(metric, of[0], 1, of[1]) == 9
    assert value_of(metric, of[0], 1, {}) == 2
    assert value_of(metric, accumulate(source, latencies(0, 600)), 60) == 10
    assert value_of(metric, {}, 1, of[0]) is None


def test_growth_by_label_adds_up_that_of_each_series() -> None:
    source = plan('m = from(ServiceMeter.value).labelIncrease(series, "pipe");')
    (metric,) = source.metrics
    told = [[("a␟pipe=x", 90), ("b␟pipe=x", 10)], [("a␟pipe=x", 4), ("b␟pipe=x", 15)]]
    told.append([("b␟pipe=x", 15), ("c␟pipe=x", 50), ("c␟pipe=x", 52), ("c␟pipe=y", 7)])
    of = [accumulate(source, readings(*some)) for some in told]

    def grown(at: int, minutes: int = 1) -> Value | None:
        return value_of(metric, of[at], minutes, of[at - 1] if at else None)

    assert grown(0) == {apart("␟pipe=x"): 0}
    assert grown(1) == {apart("␟pipe=x"): 4 + 5}
    assert grown(2) == {apart("␟pipe=x"): 0 + 2, apart("␟pipe=y"): 0}
    assert grown(1, minutes=4) == {apart("␟pipe=x"): 2}
    assert value_of(metric, {}, 1, of[0]) is None


def test_labels_of_an_earlier_minute_stay_and_of_a_later_one_the_first_by_text_join_them() -> None:
    source = plan("m = from(BrowserAppResourcePerf.*).labelCount(protocol, 3);")
    earlier, later = (
        accumulate(source, [{"protocol": name} for name in names]) for names in ("zy", "zcb")
    )
    found = values(source, merge(source, earlier, later))
    assert found == {"m": {"{n=z}": 2, "{n=y}": 1, "{n=b}": 1}}


def test_calls_of_an_hour_are_divided_by_its_minutes() -> None:
    assert evaluated("from(Service.*).cpm()", [{}] * 119, minutes=60) == 1


def test_a_sum_of_an_hour_or_a_day_is_divided_by_its_minutes_towards_zero() -> None:
    per_minute = f"{LATENCY}.sumPerMin()"
    assert evaluated(per_minute, latencies(100, 79), minutes=60) == 2
    assert evaluated(per_minute, latencies(-100, -79), minutes=60) == -2
    assert evaluated(per_minute, latencies(1440, 1439), minutes=1440) == 1


def test_sums_of_labels_are_divided_by_minutes_when_they_are_together() -> None:
    definition = 'from(ServiceMeter.value).labelSumPerMin(series, "pipe")'
    rows = readings(("a␟pipe=x", 90), ("b␟pipe=x", 30), ("b␟pipe=y", 59))
    assert evaluated(definition, rows, minutes=60) == {apart("␟pipe=x"): 2, apart("␟pipe=y"): 0}


def test_the_threshold_of_apdex_is_that_of_the_service() -> None:
    source = plan(f"m = {LATENCY}.apdex(name, status);")
    rows: list[Row] = [{"latency": 150, "status": True, "name": name} for name in ("fast", None)]
    state = accumulate(source, rows, lambda name: 100 if name == "fast" else 200)
    assert values(source, state) == {"m": 7500}


ROW = {"name": "/checkout", "latency": 5, "status": True, "type": "MQ", "tags": ["a", "b"]}
CONDITIONS = [
    ('name == "/checkout"', True),
    ('name != "x"', True),
    ("name == null", False),
    ("rpcStatusCode == null", True),
    ('rpcStatusCode != "OK"', True),
    ('rpcStatusCode like "%"', False),
    ('name like "/check%"', True),
    ('name like "%out"', True),
    ('name like "%eck%"', True),
    ('name like "%/check"', False),
    ('name like "out%"', False),
    ("latency > 4", True),
    ("latency > 5", False),
    ("latency >= 5", True),
    ("latency < 5", False),
    ("latency <= 5", True),
    ("latency in [4, 5]", True),
    ("latency in [4]", False),
    ("status == true", True),
    ("type == RequestType.MQ", True),
    ("type in [RequestType.HTTP, RequestType.RPC]", False),
    ("layer == Layer.MESH", False),
    ('tags contain "a"', True),
    ('tags contain "c"', False),
    ('tags not contain "c"', True),
    ('tags not contain "a"', False),
    ('(long)tag["x"] > 1', False),
    ('tag["x"] == null', True),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_condition(condition: str, holds: bool) -> None:
    assert evaluated(f"from(Service.*).filter({condition}).count()", [ROW]) == (
        1 if holds else None
    )


def test_a_list_that_is_missing_neither_contains_nor_does_not() -> None:
    for operator in ("contain", "not contain"):
        assert evaluated(f'from(Service.*).filter(tags {operator} "a").count()', [{}]) is None


def test_division_goes_towards_zero_as_in_java() -> None:
    assert [truncated(a, b) for a, b in ((7, 2), (-7, 2), (7, -2), (-7, -2), (0, 3))] == [
        *(3, -3, -3, 3, 0)
    ]


SERVICE = next(source for source in plan_of(shipped()).sources if source.source == "Service")
ROWS = st.lists(
    st.fixed_dictionaries(
        {"latency": st.integers(0, 3000), "status": st.booleans()},
        optional={
            "type": st.sampled_from(["MQ", "HTTP"]),
            "tag": st.dictionaries(st.just("transmission.latency"), st.sampled_from(["7", "x"])),
        },
    ),
    max_size=12,
)


@given(ROWS, st.integers(0, 12))
def test_merged_parts_are_the_whole_wherever_it_is_cut(rows: list[Row], at: int) -> None:
    parts = accumulate(SERVICE, rows[:at]), accumulate(SERVICE, rows[at:])
    before = [dict(part) for part in parts]
    whole = accumulate(SERVICE, rows)
    assert merge(SERVICE, *parts) == whole
    assert [dict(part) for part in parts] == before
    assert values(SERVICE, merge(SERVICE, parts[1], parts[0])) == values(SERVICE, whole)

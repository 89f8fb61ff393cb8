"""Values of many rows at once, and lists of entities with all that an entry says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden.mqe.scripts import script
from golden.mqe.storing import store
from skyfarer.oap.core import ids
from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.oap.oal.functions import FUNCTIONS
from skyfarer.oap.oal.values import TABLES, value_of
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.expressions import columns, ranking
from skyfarer.oap.query.expressions.catalogue import Catalogue, Derived

PLAN = plan_of(
    [
        Text(
            "ranked.oal",
            """
            r_long_avg = from(Service.latency).longAvg();
            r_avg = from(Service.latency).avg();
            r_double_avg = from(Service.latency).doubleAvg();
            r_sum = from(Service.latency).sum();
            r_sum_per_minute = from(Service.latency).sumPerMin();
            r_count = from(Service.*).count();
            r_cpm = from(Service.*).cpm();
            r_percent = from(Service.*).percent(status == true);
            r_rate = from(Service.*).rate(status == true, latency > 5);
            r_max = from(Service.latency).max();
            r_min = from(Service.latency).min();
            r_max_double = from(Service.latency).maxDouble();
            r_min_double = from(Service.latency).minDouble();
            r_apdex = from(Service.latency).apdex(name, status);
            r_increase = from(Service.latency).increase();
            """,
        )
    ]
)
METRICS = [one for one in Catalogue(PLAN) if isinstance(one, Derived)]
HOURS = Duration.of({"start": "2026-11-15 08", "end": "2026-11-15 11", "step": "HOUR"})
BUCKETS = [2026111507 + n for n in range(5)]


@st.composite
def rows(draw: st.DrawFn, of: Derived) -> list[dict[str, Any]]:
    """Of a few entities; any part may be missing, as in a row of an older plan."""
    found = []
    for entity in ("a", "b", "c"):
        for bucket in BUCKETS:
            row: dict[str, Any] = {"entity_id": entity, "time_bucket": bucket}
            for part, column in of.metric.columns:
                least = 1 if part in ("count", "total", "total_num") else 0
                wide = st.integers(least, 10**9) if least else st.integers(-(10**9), 10**9)
                there = wide | st.integers(least, 9)
                row[column] = draw(there if part == "total_num" else st.none() | there)
            found.append(row)
    return draw(st.permutations(found))


def plainly(of: Derived, found: list[dict[str, Any]]) -> dict[str, list[float]]:
    window = HOURS.window(UTC)
    by_key = {(row["entity_id"], row["time_bucket"]): row for row in found}
    values: dict[str, list[float]] = {}
    for (entity, bucket), row in sorted(by_key.items()):
        before = by_key.get((entity, window.predecessors.get(bucket, 0)))
        if bucket in window.predecessors:
            value = value_of(of.metric, row, window.minutes, before)
            if value is not None and not isinstance(value, Mapping):
                values.setdefault(entity, []).append(float(value))
    return values


def at_once(of: Derived, found: list[dict[str, Any]]) -> dict[str, list[float]]:
    growth = of.metric.function == "increase"
    asked = [row for row in found if growth or row["time_bucket"] != BUCKETS[0]]
    names = ["time_bucket", *(column for _, column in of.metric.columns)]
    schema = pa.schema({"entity_id": pa.string(), **dict.fromkeys(names, pa.int64())})
    table = pa.Table.from_pylist(sorted(asked, key=lambda row: row["time_bucket"]), schema)
    entities, numbers = columns.values(of, table, HOURS.window(UTC))
    values: dict[str, list[float]] = {}
    for entity, number in zip(entities.to_pylist(), np.asarray(numbers), strict=True):
        values.setdefault(entity, []).append(float(number))
    return values


@pytest.mark.parametrize("of", METRICS, ids=lambda of: of.name)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_many_rows_at_once_have_the_values_that_each_has_alone(of: Derived, data: Any) -> None:
    found = data.draw(rows(of))
    assert at_once(of, found) == plainly(of, found)


def test_every_function_that_can_be_sorted_by_is_compared() -> None:
    assert {of.metric.function for of in METRICS} == set(FUNCTIONS) - TABLES


@pytest.mark.parametrize("of", METRICS, ids=lambda of: of.name)
def test_a_column_that_no_table_has_is_a_part_that_no_row_has_reached(of: Derived) -> None:
    bare = pa.table({"entity_id": ["a"], "time_bucket": [BUCKETS[1]]})
    entities, numbers = columns.values(of, bare, HOURS.window(UTC))
    assert (len(entities), len(numbers)) == (0, 0)


OWNERS = """query ($x: String!, $d: Duration!) {
  execExpression(expression: $x, entity: {}, duration: $d) { results { values { id owner {
    scope serviceID serviceName normal
    serviceInstanceID serviceInstanceName endpointID endpointName } } } } }"""
SHOP = ids.service_id("shop")
NONE = {"serviceInstanceID": None, "serviceInstanceName": None} | {
    "endpointID": None,
    "endpointName": None,
}
OF_SHOP = {"serviceID": SHOP, "serviceName": "shop", "normal": True} | NONE


@pytest.mark.parametrize(
    ("metric", "owner"),
    [
        ("service_cpm", {"scope": "Service"} | OF_SHOP),
        (
            "service_instance_cpm",
            OF_SHOP
            | {
                "scope": "ServiceInstance",
                "serviceInstanceID": ids.instance_id(SHOP, "shop-1"),
                "serviceInstanceName": "shop-1",
            },
        ),
        (
            "endpoint_cpm",
            OF_SHOP
            | {
                "scope": "Endpoint",
                "endpointID": ids.endpoint_id(SHOP, "/pay"),
                "endpointName": "/pay",
            },
        ),
        (
            "service_relation_client_cpm",
            dict.fromkeys(OF_SHOP) | {"scope": "ServiceRelation"},
        ),
    ],
)
def test_an_entry_of_a_list_says_whose_it_is(shelf, plan, zone, metric, owner):
    loaded = """
load Service shop
  0800
load ServiceInstance shop / shop-1
  0800
load Endpoint shop / /pay
  0800
load ServiceRelation shop -> cart
  0800
"""
    store(shelf.storage, plan, script("owners.txt", loaded, date(2026, 6, 1)), zone)
    now = {"start": "2026-06-01 0800", "end": "2026-06-01 0800", "step": "MINUTE"}
    result = shelf.ask(OWNERS, x=f"top_n({metric}, 5, des)", d=now)["execExpression"]
    assert [value["owner"] for value in result["results"][0]["values"]] == [owner]


@pytest.mark.parametrize("ascending", [True, False])
def test_the_first_are_those_of_a_whole_sort_however_many_are_equal(ascending: bool) -> None:
    random = Random(3)
    for limit in (0, 1, 2, 5, 30, 99):
        means = [random.randrange(-3, 4) for _ in range(30)]
        names = [f"e{number:02}" for number in random.sample(range(99), 30)]
        sign = 1 if ascending else -1
        expected = sorted(zip(names, means, strict=True), key=lambda one: (sign * one[1], one[0]))
        top = ranking.Top(limit, ascending)
        found = ranking._first(pa.array(names), np.array(means, np.float64), top)
        assert found == expected[:limit]


def test_whole_numbers_are_divided_as_whole_numbers_to_the_last_digit() -> None:
    random = Random(5)
    divisors = [random.choice((1, 3, 7, random.randrange(1, 2**31))) for _ in range(2_000)]
    dividends = [
        random.choice((0, max(most // divisor * divisor - 1, 0), random.randrange(most)))
        for most, divisor in zip([2**53] * 1_000 + [2**62] * 1_000, divisors, strict=True)
    ]
    for part in (slice(0, 1_000), slice(1_000, None)):
        found = columns._truncated(np.array(dividends[part]), np.array(divisors[part]))
        pairs = zip(dividends[part], divisors[part], strict=True)
        assert [int(one) for one in found] == [dividend // divisor for dividend, divisor in pairs]

"""A run of buckets has the values that each of its rows has alone, whatever is missing in one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.oap.oal.plan import Metric
from skyfarer.oap.oal.runs import values_of
from skyfarer.oap.oal.values import value_of

TEXT = """
    long_avg = from(Service.latency).longAvg();
    avg = from(Service.latency).avg();
    double_avg = from(Service.latency).doubleAvg();
    sum = from(Service.latency).sum();
    sum_per_minute = from(Service.latency).sumPerMin();
    count = from(Service.*).count();
    cpm = from(Service.*).cpm();
    percent = from(Service.*).percent(status == true);
    rate = from(Service.*).rate(status == true, latency > 5);
    most = from(Service.latency).max();
    least = from(Service.latency).min();
    most_double = from(Service.latency).maxDouble();
    apdex = from(Service.latency).apdex(name, status);
    percentile = from(Service.latency).percentile2(10);
"""
METRICS = [
    metric for source in plan_of([Text("runs.oal", TEXT)]).sources for metric in source.metrics
]
DIVISORS = ("count", "total_num")
TABLES = st.dictionaries(st.integers(0, 30).map(str), st.integers(1, 99), min_size=1)
SOME = st.integers(0, 10**12)


def rows(metric: Metric, ordinary: bool) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Ordinary ones have every part, and none below zero. What divides is never 0, and an apdex
    always has its total: such rows are never stored."""
    parts = {
        column: TABLES if part == "dataset" else st.integers(1, 99) if part in DIVISORS else SOME
        for part, column in metric.columns
    }
    if ordinary:
        return st.lists(st.fixed_dictionaries(parts), max_size=5)
    totals = [column for part, column in metric.columns if part == "total_num"]
    strange = {
        column: some | st.integers(-99, -1) if some is SOME else some
        for column, some in parts.items()
        if column not in totals
    }
    always = {column: parts[column] for column in totals}
    return st.lists(st.fixed_dictionaries(always, optional=strange), max_size=5)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@pytest.mark.parametrize("ordinary", [True, False], ids=["ordinary", "strange"])
@settings(max_examples=25)
@given(data=st.data(), minutes=st.sampled_from([1, 60, 1440]))
def test_a_run_has_the_values_of_its_rows(
    metric: Metric, ordinary: bool, data: st.DataObject, minutes: int
) -> None:
    run = data.draw(rows(metric, ordinary))
    alone = [value_of(metric, row, minutes) for row in run]
    found = values_of(metric, run, minutes)
    assert found == alone
    assert [type(value) for value in found] == [type(value) for value in alone]

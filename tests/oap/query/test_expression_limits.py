"""What an expression may cost, and what storage's failures become."""

from __future__ import annotations

from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.oap.core import ids
from skyfarer.oap.core.slow import SlowStatement
from skyfarer.oap.oal.compiler import Text, plan_of, shipped
from skyfarer.oap.query import limits
from skyfarer.oap.query.durations import POINTS_MAX, Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions import Expressions
from skyfarer.oap.query.expressions.arithmetic import text, whole
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.expressions.results import Result, ResultType
from skyfarer.testing.memory_reader import MemoryReader

PLAN = plan_of(shipped())
SHOP = {"serviceName": "shop", "normal": True}
MINUTE = Duration.of({"start": "2026-11-15 0800", "end": "2026-11-15 0800", "step": "MINUTE"})


def evaluated(expression: str, reader: Any = None, duration: Duration = MINUTE) -> Result:
    room = Expressions(reader or MemoryReader(), Catalogue(PLAN), UTC)
    return room.evaluate(expression, SHOP, duration)


def error(expression: str, **more: Any) -> str:
    result = evaluated(expression, **more)
    assert result.type is ResultType.UNKNOWN and result.error is not None
    return result.error


@pytest.mark.parametrize(
    ("good", "bad", "sentence"),
    [
        (
            "1" * limits.EXPRESSION_CHARS_MAX,
            "1" * (limits.EXPRESSION_CHARS_MAX + 1),
            "line 1, column 1: the expression has 8193 characters, more than the 8192 allowed; "
            "ask for its parts one by one",
        ),
        (
            "(" * (limits.EXPRESSION_DEPTH_MAX - 1) + "1" + ")" * (limits.EXPRESSION_DEPTH_MAX - 1),
            "abs(" * 32 + "1" + ")" * 32,
            "line 1, column 129: the expression nests more than 32 levels deep; "
            "ask for its parts one by one",
        ),
        (
            "+".join("1" * (limits.EXPRESSION_OPERATIONS_MAX + 1)),
            "+".join("1" * (limits.EXPRESSION_OPERATIONS_MAX + 2)),
            "line 1, column 203: the expression has more than 100 operators and functions; "
            "ask for its parts one by one",
        ),
        (
            "+".join(["service_cpm"] * limits.EXPRESSION_METRICS_MAX),
            "+".join(["service_cpm"] * (limits.EXPRESSION_METRICS_MAX + 1)),
            "line 1, column 385: the expression has more than 32 metrics; "
            "ask for its parts one by one",
        ),
    ],
    ids=["characters", "depth", "operators", "metrics"],
)
def test_an_expression_at_its_bound_is_evaluated_and_one_above_says_what_to_do(good, bad, sentence):
    assert evaluated(good).error is None
    assert error(bad) == sentence


def test_a_trend_and_its_duration_together_are_bounded_as_durations_are():
    long = Duration.of({"start": "2026-11-15 0000", "end": "2026-11-15 0758", "step": "MINUTE"})
    assert len(evaluated("increase(service_cpm, 21)", duration=long).series[0].values) == 479
    found = error("increase(service_cpm, 22)", duration=long)
    assert found == f"line 1, column 10: 22 minutes before 479 are more than {POINTS_MAX}"


def test_more_labels_than_can_be_shown_are_refused_at_the_metric():
    reader = MemoryReader()
    labels = {f"{n}": n for n in range(1_001)}
    own = plan_of([Text("own.oal", "many = from(Service.*).labelCount(endpointName, 5000);")])
    column = dict(own.sources[0].metrics[0].columns)["dataset"]
    reader.put("Service", ids.service_id("shop"), 202611150000, {column: labels})
    long = Duration.of({"start": "2026-11-15 0000", "end": "2026-11-15 0819", "step": "MINUTE"})
    room = Expressions(reader, Catalogue(own), UTC)
    assert room.evaluate("1 + many", SHOP, long).error == (
        "line 1, column 5: many has 1001 labels at 500 points, more than 500000 values; "
        "choose labels or ask for a shorter duration"
    )
    few = room.evaluate("many{n='5,7'}", SHOP, long)
    assert [one.labels for one in few.series] == [(("n", "5"),), (("n", "7"),)]


def test_what_storage_cannot_do_now_stands_in_the_error_of_the_expression():
    reader = MemoryReader()
    reader.failure = RetryableError("the search took longer than 10 s; ask for less")
    for expression, column in (("2 * service_cpm", 5), ("increase(service_cpm, 1)", 10)):
        found = error(expression, reader=reader)
        assert found == f"line 1, column {column}: the search took longer than 10 s; ask for less"
    slow = error("top_n(top_n_service_database_statement, 1, des)", reader=reader)
    assert slow == "line 1, column 7: the search took longer than 10 s; ask for less"


def test_nothing_is_read_for_an_expression_that_makes_no_sense():
    reader = MemoryReader()
    reader.failure = AssertionError("storage was asked")
    assert "does not exist" in error("service_cpm + nobody_knows", reader=reader)
    assert "takes comparisons" in error("service_cpm && service_cpm", reader=reader)


class ManyRecords(MemoryReader):
    def slowest(self, what: Any, entity_id: Any, between: Any, limit: int) -> list[SlowStatement]:
        one = SlowStatement("s", "e", "SELECT 1", 5, "t", 0)
        return [one] * min(limit, limits.RECORDS_MAX + 5)


def test_the_fastest_of_too_many_records_are_refused():
    expression = "top_n(top_n_service_database_statement, 3, {})"
    assert len(evaluated(expression.format("des"), ManyRecords()).series[0].values) == 3
    assert error(expression.format("asc"), reader=ManyRecords()) == (
        "line 1, column 7: there are more than 25000 records; ask for a shorter duration, or des"
    )


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0.0005, "0.001"),
        (0.0004, "0"),
        (-0.0004, "0"),
        (1234567.0, "1234567"),
        (2.5, "2.5"),
        (1e15 + 0.5, "1000000000000000.5"),
        (float(2**63), "9223372036854776000"),
        (1e23, "100000000000000000000000"),
        (float("nan"), "NaN"),
        (float("-inf"), "-∞"),
    ],
)
def test_a_number_is_written_without_grouping_and_with_three_decimals_at_most(number, shown):
    assert text(number) == shown


@pytest.mark.parametrize(
    ("number", "found"),
    [(2.9, 2), (-2.9, -2), (1e30, 2**63 - 1), (-1e30, -(2**63)), (float("nan"), 0)],
)
def test_a_whole_number_is_truncated_within_64_bits(number, found):
    assert whole(number) == found


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("start", "step", "earlier", "before"),
    [
        ("2026-10-25 02", "HOUR", [2026102500, 2026102501], 2026102423),
        ("2026-10-25 03", "HOUR", [2026102501, 2026102502], 2026102500),
        ("2026-03-29 03", "HOUR", [2026032900, 2026032901], 2026032823),
        ("2026-03-01", "DAY", [20260227, 20260228], 20260226),
        ("2026-01-01 0001", "MINUTE", [202512312359, 202601010000], 202512312358),
    ],
)
def test_buckets_before_a_duration_are_those_that_the_clock_showed(start, step, earlier, before):
    """In autumn an hour comes twice and is one; in spring one is left out."""
    window = Duration.of({"start": start, "end": start, "step": step}).window(BERLIN, 2)
    assert [point.bucket for point in window.points[:2]] == earlier
    assert (len(window.points), window.before) == (3, before)


def test_a_duration_that_the_clock_skips_is_refused():
    skipped = {"start": "2026-03-29 0210", "end": "2026-03-29 0220", "step": "MINUTE"}
    with pytest.raises(QueryError, match="has no such minute"):
        Duration.of(skipped).window(BERLIN)

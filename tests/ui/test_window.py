"""What an address says of time and of a question, and back again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from skyfarer.oap.query import limits
from skyfarer.ui.listing import Question, asked
from skyfarer.ui.logs.model import LogQuestion
from skyfarer.ui.model import ServerTime
from skyfarer.ui.traces.model import Search
from skyfarer.ui.window import MINUTES_MAX, POINTS_MAX, Window

NOW = ServerTime(datetime(2026, 11, 15, 12, 7, 31, tzinfo=UTC))


@pytest.mark.parametrize(("last", "minutes"), [("15m", 15), ("2h", 120), ("7d", 10_080), ("", 30)])
def test_the_last_minutes_hours_and_days_can_be_told(last, minutes):
    assert Window.of(last).minutes == minutes


@pytest.mark.parametrize("last", ["-5m", "5", "m", "5w", "0m", "99999d", "١٥m"])
def test_what_makes_no_sense_is_bounded_or_the_usual(last):
    assert 1 <= Window.of(last).minutes <= MINUTES_MAX


def test_a_relative_window_ends_with_the_servers_minute():
    expected = {"start": "2026-11-15 1137", "end": "2026-11-15 1207", "step": "MINUTE"}
    assert Window().duration(NOW) == expected


def test_a_fixed_window_is_what_its_address_says_and_back():
    address = {"start": "2026-11-14T08:00", "end": "2026-11-14T09:30"}
    window = Window.of("1h", **address)
    assert window.address() == address
    assert window.duration(NOW)["start"] == "2026-11-14 0800"
    assert Window.of("1h", address["end"], address["start"]) == Window.of("1h")


def test_a_question_is_its_address_and_back():
    question = Search(
        window=Window.of("6h"),
        service="a b&c",
        tags="http.method=GET, x=y=z",
        state="ERROR",
        min_ms=0,
        page=3,
    )
    assert asked(Search, question.address()) == question
    assert Question().address() == {"last": "30m"}


def test_an_address_that_was_mistyped_asks_the_usual():
    address = {
        "page": "-1",
        "min_ms": "1e9",
        "last": "soon",
        "max_ms": "9999999999",
        "state": "BAD",
    }
    assert asked(Search, address) == Search()
    assert asked(Search, {"page": "0", "order": "by luck"}) == Search()


@pytest.mark.parametrize("kind", [Search, LogQuestion])
def test_a_page_beyond_the_reach_of_the_oap_is_the_last_within_it(kind):
    far = asked(kind, {"page": "999999999"})
    assert far.page * kind.page_rows == limits.REACH_MAX
    assert asked(kind, far.address()) == far


@pytest.mark.parametrize(
    ("last", "step", "count", "first"),
    [
        ("30m", "MINUTE", 31, "2026-11-15 1137"),
        ("6h", "MINUTE", 361, "2026-11-15 0607"),
        ("1d", "HOUR", 25, "2026-11-14 12"),
        ("7d", "HOUR", 169, "2026-11-08 12"),
        ("45d", "DAY", 46, "2026-10-01"),
    ],
)
def test_a_chart_has_the_finest_steps_that_are_not_too_many(last, step, count, first):
    buckets = Window.of(last).buckets(NOW)
    assert (buckets.step, len(buckets.times), buckets.growing) == (step, count, True)
    assert buckets.duration()["start"] == first
    assert buckets.duration(1)["start"] == buckets.duration()["end"]


def test_a_window_that_is_over_has_no_step_in_progress_and_none_has_any_to_come():
    over = Window.of("", "2026-11-14T08:00", "2026-11-14T09:30").buckets(NOW)
    assert (len(over.times), over.growing) == (91, False)
    open_ended = Window.of("", "2026-11-15T12:00", "2026-11-16T00:00").buckets(NOW)
    assert (open_ended.duration()["end"], open_ended.growing) == ("2026-11-15 1207", True)
    ages = Window.of("", "2001-01-01T00:00", "2026-11-15T12:00").buckets(NOW)
    assert (ages.step, len(ages.times)) == ("DAY", POINTS_MAX)
    future = Window.of("", "2027-01-01T00:00", "2027-01-02T00:00").buckets(NOW)
    assert len(future.times) == 1

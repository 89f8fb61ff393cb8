"""What the page says in words and lines, from values alone."""

from __future__ import annotations

import re

import pytest

from skyfarer.ui.charts import CALLS, LATENCY, SUCCESS, options, sparkline, spoken
from skyfarer.ui.model import (
    Series,
    ServerTime,
    Vitals,
    count_text,
    failing_text,
    latency_text,
    percent,
    share_text,
)


@pytest.mark.parametrize(
    ("values", "current"),
    [((), None), ((3,), 3), ((None, 3), 3), ((5, 3), 5), ((5, None), 5), ((5, None, None), None)],
)
def test_the_current_value_is_of_the_last_full_minute_or_of_the_one_in_progress(values, current):
    assert Series(values).current == current


def test_success_is_never_rounded_up_to_a_whole():
    assert [share_text(sla) for sla in (10_000, 9_999, 9_500, None)] == [
        "100 %",
        "99.99 %",
        "95 %",
        "–",
    ]
    assert failing_text(9_190) == "8.1 % failing"


def test_numbers_are_grouped_and_long_waits_are_in_seconds():
    assert [count_text(n) for n in (0, 12_345, 2_500_000, None)] == ["0", "12,345", "2.5 M", "–"]
    assert [latency_text(n) for n in (0, 999, 1_240, None)] == ["0 ms", "999 ms", "1.24 s", "–"]


def test_a_service_without_calls_is_neither_slow_nor_failing():
    assert not Vitals().slow and not Vitals().failing


def test_labels_and_durations_are_in_the_servers_zone():
    time = ServerTime.of(1_794_701_862_000, "+0530")
    assert time.duration(31) == {
        "start": "2026-11-15 0517",
        "end": "2026-11-15 0547",
        "step": "MINUTE",
    }
    assert ServerTime.of(1_794_701_862_000, "-0330").now.strftime("%H:%M %z") == "20:47 -0330"


def test_the_minute_in_progress_stands_beside_the_line_of_calls_and_on_that_of_averages():
    minutes = ServerTime.of(1_794_701_862_000, "+0000").minutes(3)
    full, begun = options(CALLS, minutes, Series((4, 5, 1)))["series"]
    assert (full["data"], begun["data"]) == ([4, 5, None], [None, None, 1])
    full, begun = options(LATENCY, minutes, Series((4, 5, 1)))["series"]
    assert (full["data"], begun["data"]) == ([4, 5, 1], [])


def test_the_first_minute_of_a_service_is_drawn_as_a_dot_at_once():
    minutes = ServerTime.of(1_794_701_862_000, "+0000").minutes(3)
    full, begun = options(CALLS, minutes, Series((None, None, 1)))["series"]
    assert (full["data"], full["showSymbol"], begun["data"]) == ([None, None, 1], True, [])


def points(series: Series) -> list[str]:
    found = re.search('<polyline points="([^"]*)"', sparkline(series))
    assert found is not None
    return found[1].split()


def test_a_sparkline_leaves_out_the_minute_in_progress_and_no_minute_of_a_time_that_is_over():
    assert len(points(Series((1, 5, 2)))) == 2
    over = points(Series((1, 5, 2), growing=False))
    assert len(over) == 3
    heights = [float(point.split(",")[1]) for point in over]
    assert heights[1] < heights[2] < heights[0]


def test_the_chart_of_success_has_the_figures_hundredths_and_the_minute_it_is_of():
    drawn = percent(Series((10_000, 9_999, None, 5), growing=False))
    assert drawn == Series((100, 99.99, None, 0.05), growing=False)
    assert spoken(SUCCESS, {"": percent(Series((10_000, 9_999), growing=False))}) == (
        "Success rate over time: 99.99 to 100 %, lately 99.99 %"
    )
    assert percent(Series((9_000, 9_999, 100))).current == 99.99


def test_a_chart_whose_last_minute_had_no_calls_does_not_say_zero():
    assert spoken(CALLS, {"": Series((4, None), growing=False)}).endswith("4 to 4, lately no calls")


@pytest.mark.parametrize("values", [(), (None,), (None, None, 7), (0, 0, 0), (1, 5, 2)])
def test_a_sparkline_is_drawn_from_whatever_there_is(values):
    assert sparkline(Series(values)).startswith("<svg")

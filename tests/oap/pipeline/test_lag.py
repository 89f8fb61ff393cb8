"""The age of what waits, from looks at a queue."""

from __future__ import annotations

import pytest

from skyfarer.oap.pipeline.lag import LOOKS_MAX, Lag
from skyfarer.testing.clock import HandClock


class Line:
    def __init__(self) -> None:
        self.writing = self.committed = 0
        self.clock = HandClock()
        self.lag = Lag(lambda: self.writing, lambda: self.committed, self.clock)

    def after(self, seconds: float, writing: int, committed: int) -> float:
        self.clock.seconds += seconds
        self.writing, self.committed = writing, committed
        return self.lag.look()


def test_it_is_the_age_of_the_oldest_record_that_waits() -> None:
    line = Line()
    seen = [
        line.after(1, 0, 0),
        line.after(3600, 10, 0),  # an idle hour is not the record's age
        line.after(1, 20, 0),
        line.after(1, 20, 5),
        line.after(1, 30, 10),  # the ten of the second look are next
        line.after(1, 30, 30),
        line.after(1, 30, 30),
    ]
    assert seen == pytest.approx([0, 0, 1, 2, 2, 0, 0])


def test_a_long_standstill_takes_no_more_room_and_is_told_in_full() -> None:
    line = Line()
    looks = 3 * LOOKS_MAX
    lags = [line.after(1, number, 0) for number in range(1, looks + 1)]
    assert lags[-1] == pytest.approx(looks - 1)
    assert len(line.lag._looks) <= LOOKS_MAX
    halfway = line.after(0, looks, looks // 2)
    assert halfway == pytest.approx(looks // 2, abs=8)

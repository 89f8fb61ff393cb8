from __future__ import annotations

import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.base.lifecycle import start_all, stop_all
from skyfarer.testing.clock import HandClock


class Part:
    def __init__(
        self, name: str, diary: list[str], fails: str = "", clock: HandClock | None = None
    ):
        self._name = name
        self._diary = diary
        self._fails = fails
        self._clock = clock
        self.given_s = -1.0

    def start(self) -> None:
        self._diary.append(f"start {self._name}")
        if self._fails == "start":
            raise RuntimeError(f"{self._name} cannot start")

    def stop(self, timeout_s: float) -> None:
        self.given_s = timeout_s
        self._diary.append(f"stop {self._name}")
        if self._clock is not None:
            self._clock.seconds += 4
        if self._fails == "stop":
            raise RuntimeError(f"{self._name} cannot stop")


def test_parts_stop_in_reverse_and_one_failure_does_not_keep_the_others() -> None:
    diary: list[str] = []
    parts = [Part("a", diary), Part("b", diary, fails="stop"), Part("c", diary)]

    failures = stop_all(parts, timeout_s=1)

    assert diary == ["stop c", "stop b", "stop a"]
    assert [str(failure) for failure in failures] == ["b cannot stop"]


def test_a_part_that_cannot_start_is_stopped_with_those_before_it() -> None:
    diary: list[str] = []
    parts = [Part("a", diary), Part("b", diary, fails="start"), Part("c", diary)]

    with pytest.raises(RuntimeError, match="b cannot start"):
        start_all(parts, stop_timeout_s=1)

    assert diary == ["start a", "start b", "stop b", "stop a"]


def test_the_time_to_stop_is_shared_and_never_negative() -> None:
    clock = HandClock()
    parts = [Part(name, [], clock=clock) for name in "abc"]

    stop_all(parts, timeout_s=6, clock=clock)

    assert [part.given_s for part in reversed(parts)] == [6, 2, 0]


def test_the_system_clock_counts_milliseconds_of_this_century() -> None:
    clock = SystemClock()

    assert 1_600_000_000_000 < clock.now_ms() < 4_000_000_000_000
    assert clock.monotonic_s() <= clock.monotonic_s()

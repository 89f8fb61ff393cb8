from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.base.backoff import Backoff, BackoffSettings


def test_waits_double_up_to_the_maximum_without_jitter() -> None:
    backoff = Backoff(BackoffSettings(0.1, 1.0, 2.0, 0.0), Random(1))

    assert [round(backoff.next_s(), 3) for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_reset_starts_again_from_the_first_wait() -> None:
    backoff = Backoff(BackoffSettings(jitter=0.0), Random(1))
    first = backoff.next_s()
    backoff.next_s()

    backoff.reset()

    assert backoff.next_s() == first


@given(seed=st.integers(), jitter=st.floats(0, 0.99), attempts=st.integers(1, 60))
def test_no_wait_is_negative_or_above_the_maximum(seed: int, jitter: float, attempts: int) -> None:
    settings = BackoffSettings(jitter=jitter)
    backoff = Backoff(settings, Random(seed))

    for _ in range(attempts):
        assert 0 < backoff.next_s() <= settings.maximum_s


def test_two_sidecars_do_not_wait_alike() -> None:
    settings = BackoffSettings()
    one, other = Backoff(settings, Random(1)), Backoff(settings, Random(2))

    assert [one.next_s() for _ in range(5)] != [other.next_s() for _ in range(5)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"initial_s": 0.0},
        {"initial_s": 2.0, "maximum_s": 1.0},
        {"multiplier": 0.5},
        {"jitter": 1.0},
        {"jitter": -0.1},
    ],
)
def test_settings_that_cannot_wait_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        BackoffSettings(**wrong)

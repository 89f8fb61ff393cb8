"""What the steps of a history are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition

Fate = tuple[int, int]
CONSUMERS = ("main", "other")

KINDS = st.integers(1, 2**32 - 1)
SIZES = st.sampled_from([0, 1, 7, 900, 2500, 3500, 4096])
BATCHES = st.lists(SIZES, min_size=1, max_size=6) | st.integers(200, 400).map(lambda n: [3] * n)
ALIVE = (0, 0)
KEPT_BYTES = st.sampled_from([0, 1, 15, 16, 17, 30, 40, 60, 2100, 5000])
SPACE = st.sampled_from([[], [], [], [], ["allocate"], ["allocate", "pwrite", "pwritev"]])
NAMES = st.sampled_from(CONSUMERS)
PARTS = st.sampled_from(["writer", *CONSUMERS])


def fates(calls_max: int) -> st.SearchStrategy[Fate]:
    """Which call is the last, and how much of it is done; two in three live on."""
    death = st.tuples(st.integers(1, calls_max), KEPT_BYTES)
    return st.sampled_from([False, False, True]).flatmap(
        lambda dies: death if dies else st.just(ALIVE)
    )


def failures(calls_max: int) -> st.SearchStrategy[int]:
    """Which call fails; none, two times in three."""
    return st.sampled_from([False, False, True]).flatmap(
        lambda fails: st.integers(1, calls_max) if fails else st.just(0)
    )


def when(possible: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """As `precondition`, and known to a replay."""

    def decorate(method: Any) -> Any:
        decorated = precondition(possible)(method)
        decorated.possible = possible
        return decorated

    return decorate

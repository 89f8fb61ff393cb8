"""How long the one who asked still waits, for all that is read in its name.

An answer is many reads and has one time. Whoever answers opens `within`; storage asks `left_s`
before each read, and gives the read no more than that. It goes by thread, since one request is
answered in one: an argument of every read would be the same value handed through every room. Where
nobody has opened it, as in the pipeline, a read has its own bound alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.base.errors import RetryableError


class LateError(RetryableError):
    """The time of the whole answer is over."""


@dataclass(frozen=True)
class _Deadline:
    clock: Clock
    timeout_s: float
    until_s: float


_OPEN: Final[ContextVar[_Deadline | None]] = ContextVar("deadline", default=None)


@contextmanager
def within(timeout_s: float, clock: Clock) -> Iterator[None]:
    """All that this thread reads until it leaves."""
    token = _OPEN.set(_Deadline(clock, timeout_s, clock.monotonic_s() + timeout_s))
    try:
        yield
    finally:
        _OPEN.reset(token)


def left_s(at_most_s: float = inf) -> float:
    """Above 0: LateError where nothing is left."""
    deadline = _OPEN.get()
    if deadline is None:
        return at_most_s
    left = deadline.until_s - deadline.clock.monotonic_s()
    if left <= 0:
        raise LateError(
            f"the answer took longer than {deadline.timeout_s:g} s: ask for less at a time"
        )
    return min(left, at_most_s)

"""Starting and stopping several parts as one.

Stopping is where data is lost, so one part that fails to stop must not keep the others from
draining: every stop is tried, and the failures are handed back together.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from skyfarer.base.clock import Clock, SystemClock

log = logging.getLogger(__name__)


class Stoppable(Protocol):
    def stop(self, timeout_s: float) -> None: ...


class Component(Stoppable, Protocol):
    """Construction does no I/O.

    `start` may block and may raise; it need not undo its own half, since `stop` follows then too.
    `stop` drains what it can within `timeout_s`; it is safe twice and unstarted, and nothing else
    may be called after it. Both are called from one thread.
    """

    def start(self) -> None: ...


def start_all(components: Sequence[Component], stop_timeout_s: float) -> None:
    """Starts in the given order; when one raises, stops it and those before, then raises that."""
    for position, component in enumerate(components):
        try:
            component.start()
        except BaseException:
            stop_all(components[: position + 1], stop_timeout_s)
            raise


def stop_all(
    components: Sequence[Stoppable], timeout_s: float, clock: Clock | None = None
) -> list[Exception]:
    """Stops in reverse order of start and returns what was raised, in the order it happened.

    The time is shared: each part is given what is left of `timeout_s`, at least 0, so a part
    that used it all makes the rest leave at once rather than not at all.
    """
    clock = clock or SystemClock()
    deadline_s = clock.monotonic_s() + timeout_s
    failures: list[Exception] = []
    for component in reversed(components):
        try:
            component.stop(max(0.0, deadline_s - clock.monotonic_s()))
        except Exception as failure:
            log.exception("could not stop %s", type(component).__name__)
            failures.append(failure)
    return failures

"""What is asked, how it ended, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from skyfarer.base.clock import Clock
from skyfarer.oap.query.errors import QueryError
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import QUERY_REQUESTS, QUERY_SECONDS


class Counting:
    """Any thread."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self.clock = clock

    @contextmanager
    def of(self, operation: str) -> Iterator[None]:
        """One answer; what is raised inside goes on to the caller."""
        outcome, started_s = "failed", self.clock.monotonic_s()
        try:
            yield
            outcome = "ok"
        except QueryError:
            outcome = "refused"
            raise
        finally:
            spent_s = self.clock.monotonic_s() - started_s
            self._registry.inc(QUERY_SECONDS, spent_s, operation=operation)
            self._registry.inc(QUERY_REQUESTS, operation=operation, outcome=outcome)

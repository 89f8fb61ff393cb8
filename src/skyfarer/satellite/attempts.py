"""Sending one batch again and again: the pauses in between, and what ends them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Literal

from skyfarer.base.backoff import Backoff
from skyfarer.base.clock import Clock
from skyfarer.base.errors import RetryableError
from skyfarer.satellite.contracts import AccessDenied, Batch, Forwarder, Unexplained
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RetrySettings:
    elapsed_max_s: float = 0.0  # since a batch first failed; 0 is for ever
    on_exhausted: Literal["park", "drop"] = "park"
    denied_pause_s: float = 5.0  # at least, while the upstream refuses our credentials


class Suspected(Exception):  # noqa: N818 - a turn of a search, not an error
    """The upstream failed on this batch `tries` times in a row and did not say why."""


class Exhausted(Exception):  # noqa: N818 - a decision, not an error
    """The time this batch had is over."""


class Attempts:
    """One batch at a time, on one event loop. Pauses grow until something is taken."""

    def __init__(
        self,
        pipe: str,
        forwarder: Forwarder,
        backoff: Backoff,
        retry: RetrySettings,
        clock: Clock,
        registry: Registry,
    ) -> None:
        self.forwarder = forwarder
        self._pipe = pipe
        self._backoff = backoff
        self._retry = retry
        self._clock = clock
        self._registry = registry
        self._try_now = asyncio.Event()
        self._failing_since_s: float | None = None
        self._failures = 0
        self._denied = False

    def hurry(self) -> None:
        """Ends the pause that is under way, or the next one."""
        self._backoff.reset()
        self._try_now.set()

    async def send(self, batch: Batch, tries: int) -> None:
        """Until the upstream has it. PermanentError: it never will. `Suspected` after `tries`
        unexplained failures in a row, `Exhausted` when its time is over."""
        unexplained = 0
        while True:
            try:
                await self.forwarder.send(batch)
            except RetryableError as failure:
                unexplained = unexplained + 1 if isinstance(failure, Unexplained) else 0
                self._check_time(failure)
                if unexplained == tries:
                    raise Suspected(str(failure)) from failure
                await self._pause(failure)
            else:
                self._recovered()
                return

    def _check_time(self, failure: RetryableError) -> None:
        """Time in which we were denied access does not count: the data is good."""
        now_s = self._clock.monotonic_s()
        if isinstance(failure, AccessDenied):
            self._failing_since_s = None
            return
        if self._failing_since_s is None:
            self._failing_since_s = now_s
        elapsed_s, limit_s = now_s - self._failing_since_s, self._retry.elapsed_max_s
        if 0 < limit_s <= elapsed_s:
            self._failing_since_s = None
            raise Exhausted(f"tried for {elapsed_s:.0f} s: {failure}") from failure

    async def _pause(self, failure: RetryableError) -> None:
        self._registry.inc(table.SENDER_RETRY_COUNT, pipe=self._pipe)
        self._tell(failure)
        pause_s = max(self._backoff.next_s(), failure.after_s or 0.0)
        if self._denied:
            pause_s = max(pause_s, self._retry.denied_pause_s)
        timer = asyncio.get_running_loop().call_later(pause_s, self._try_now.set)
        try:
            await self._try_now.wait()
        finally:
            timer.cancel()
            self._try_now.clear()

    def _tell(self, failure: RetryableError) -> None:
        """Once when it begins, whatever the number of attempts."""
        denied, self._denied = self._denied, isinstance(failure, AccessDenied)
        self._failures += 1
        if self._denied and not denied:
            log.error(
                "pipe %s: upstream refuses our credentials; put them right, data is kept: %s",
                *(self._pipe, failure),
            )
        elif self._failures == 1:
            log.warning("pipe %s: upstream does not take data, retrying: %s", self._pipe, failure)
        if denied != self._denied:
            self._registry.set(table.SENDER_ACCESS_DENIED, int(self._denied), pipe=self._pipe)

    def _recovered(self) -> None:
        if self._denied:
            self._denied = False
            self._registry.set(table.SENDER_ACCESS_DENIED, 0, pipe=self._pipe)
        if self._failures:
            log.info("pipe %s: upstream takes data again", self._pipe)
        self._failures = 0
        self._failing_since_s = None
        self._backoff.reset()

"""Delivers a pipe's backlog: in order, one batch at a time, for as long as it takes.

A batch that fails for now is sent again, with growing and jittered pauses, without end: an outage
costs room in the queue and nothing else. A batch refused for good is halved until the refused
record stands alone; that one is parked as a dead letter and counted, the others are delivered.
One batch at a time keeps the sequences that reach the upstream ascending, which is what lets it
recognise a resend.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from skyfarer.base.backoff import Backoff
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.queue.run import CORRUPT
from skyfarer.satellite.backlog import Backlog
from skyfarer.satellite.contracts import Batch, Forwarder, Gap
from skyfarer.satellite.dead_letters import DeadLetters
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)

REJECTED = "rejected"


class Sender:
    """`stop` drains for at most `timeout_s`; what it leaves stays queued for the next start."""

    def __init__(
        self,
        pipe: str,
        backlog: Backlog,
        forwarder: Forwarder,
        dead_letters: DeadLetters,
        backoff: Backoff,
        registry: Registry,
        health: Health,
    ) -> None:
        self._pipe = pipe
        self._backlog = backlog
        self._forwarder = forwarder
        self._dead_letters = dead_letters
        self._backoff = backoff
        self._registry = registry
        self._health = health
        self._drained = asyncio.Event()
        self._try_now = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0

    async def start(self) -> None:
        await self._forwarder.start()
        self._task = asyncio.create_task(self._run(), name=f"sender {self._pipe}")

    async def stop(self, timeout_s: float) -> None:
        if self._task is None:
            return
        task, self._task = self._task, None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        if self._backlog.ledger().queued:
            await self._drain(timeout_s)
        task.cancel()
        await asyncio.wait({task})
        await self._forwarder.stop(max(0.0, deadline - loop.time()))

    async def _drain(self, timeout_s: float) -> None:
        self._drained.clear()
        self._backlog.hurry()
        self._backoff.reset()
        self._try_now.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._drained.wait(), timeout_s)

    async def _run(self) -> None:
        part = f"sender {self._pipe}"
        while True:
            try:
                await self._deliver()
            except Exception as failure:
                log.exception("pipe %s: cannot read or commit its queue", self._pipe)
                self._health.set(part, False, str(failure))
                self._backlog.rewind()
                await asyncio.sleep(self._backoff.next_s())
            else:
                self._health.set(part, True)

    async def _deliver(self) -> None:
        """One batch's worth of records, from waiting for it to its last commit."""
        await self._backlog.wait()
        for piece in self._backlog.take(self._forwarder.batch_max):
            if isinstance(piece, Gap):
                self._lose(piece)
            else:
                self._registry.inc(
                    table.PROCESSOR_READING_COUNT, len(piece.payloads), pipe=self._pipe
                )
                await self._settle(piece)
        if not self._backlog.ledger().queued:
            self._drained.set()

    async def _settle(self, batch: Batch) -> None:
        waiting = [batch]
        refused: list[str] = []
        while waiting:
            part = waiting.pop()
            try:
                await self._send(part)
            except PermanentError as refusal:
                if len(part.payloads) > 1:
                    waiting.extend(reversed(part.halves()))
                else:
                    self._park(part, str(refusal))
                    refused.append(str(refusal))
            else:
                self._backlog.settle(part.end)
                self._registry.inc(table.SENDER_RECORDS, len(part.payloads), pipe=self._pipe)
        if refused:
            log.error(
                "pipe %s: upstream refused %d records, parked in %s: %s",
                *(self._pipe, len(refused), self._dead_letters.path, refused[0]),
            )

    async def _send(self, batch: Batch) -> None:
        """Until the upstream has it, or refuses it for good."""
        while True:
            try:
                await self._forwarder.send(batch)
            except RetryableError as failure:
                await self._pause(failure)
            else:
                self._recovered()
                return

    async def _pause(self, failure: RetryableError) -> None:
        self._failures += 1
        self._registry.inc(table.SENDER_RETRY_COUNT, pipe=self._pipe)
        if self._failures == 1:
            log.warning("pipe %s: upstream does not take data, retrying: %s", self._pipe, failure)
        pause_s = max(self._backoff.next_s(), failure.after_s or 0.0)
        timer = asyncio.get_running_loop().call_later(pause_s, self._try_now.set)
        try:
            await self._try_now.wait()
        finally:
            timer.cancel()
            self._try_now.clear()

    def _recovered(self) -> None:
        if self._failures:
            log.info("pipe %s: upstream takes data again", self._pipe)
        self._failures = 0
        self._backoff.reset()

    def _park(self, batch: Batch, reason: str) -> None:
        try:
            self._dead_letters.park(batch.first, batch.kind, reason, batch.payloads[0])
        except OSError as failure:
            log.error("pipe %s: record %d not parked: %s", self._pipe, batch.first, failure)
        self._abandon(Gap(batch.first, batch.end, REJECTED))

    def _lose(self, gap: Gap) -> None:
        count = gap.end - gap.first
        log.error("pipe %s: %d records dropped, %s", self._pipe, count, gap.reason)
        if gap.reason == CORRUPT:
            self._registry.inc(table.QUEUE_DAMAGED, count)
        self._abandon(gap)

    def _abandon(self, gap: Gap) -> None:
        count = gap.end - gap.first
        self._backlog.settle(gap.end, count, gap.reason)
        self._registry.inc(table.SENDER_ABANDONED_COUNT, count, pipe=self._pipe, reason=gap.reason)

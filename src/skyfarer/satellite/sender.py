"""Delivers a pipe's backlog: run by run, in order, through the filters, for as long as it takes.

A run is taken, processed once and delivered part by part; each part's commit counts what was not
delivered up to there. One run at a time keeps the sequences that reach the upstream ascending,
which is what lets it recognise a resend, and the queue is the only place where anything waits.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from skyfarer.base.backoff import Backoff
from skyfarer.base.clock import Clock, SystemClock
from skyfarer.satellite.attempts import Attempts, RetrySettings
from skyfarer.satellite.backlog import Backlog
from skyfarer.satellite.books import Books
from skyfarer.satellite.contracts import Batch, Forwarder, Gap, Loss, Processed, Processor
from skyfarer.satellite.dead_letters import DeadLetters
from skyfarer.satellite.delivery import Delivery
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)


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
        *,
        processor: Processor | None = None,
        retry: RetrySettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        retry = retry or RetrySettings()
        self._pipe = pipe
        self._backlog = backlog
        self._forwarder = forwarder
        self._backoff = backoff
        self._registry = registry
        self._health = health
        self._processor = processor
        self._attempts = Attempts(pipe, forwarder, backoff, retry, clock or SystemClock(), registry)
        self._delivery = Delivery(self._attempts, retry.on_exhausted == "park")
        self._books = Books(pipe, backlog, dead_letters, registry)
        self._drained = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

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
        self._attempts.hurry()
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
        """One run, from waiting for it to its last commit."""
        await self._backlog.wait()
        pieces = self._backlog.take()
        done = [await self._processed(piece) for piece in pieces]
        self._books.open(loss for one in done for loss in one.losses)
        batches = [batch for one in done for batch in (*one.emitted, *one.outgoing)]
        if not await self._delivery.deliver(batches, self._books.settle):
            self._backlog.rewind()
            return
        self._books.close(pieces[-1].end)
        if not self._backlog.ledger().queued:
            self._drained.set()

    async def _processed(self, piece: Batch | Gap) -> Processed:
        if isinstance(piece, Gap):
            log.error(
                "pipe %s: %d records dropped, %s",
                *(self._pipe, piece.end - piece.first, piece.reason),
            )
            return Processed((), (Loss(piece.first, piece.end, piece.reason),))
        self._registry.inc(table.PROCESSOR_READING_COUNT, len(piece.payloads), pipe=self._pipe)
        if self._processor is None:
            return Processed((piece,))
        return await self._processor.process(piece)

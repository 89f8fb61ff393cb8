"""One pipe: what receivers or a fetcher bring, a backlog, a sender; and its books."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.queue.errors import QueueFull, RecordTooLarge
from skyfarer.queue.run import CORRUPT
from skyfarer.satellite.backlog import Backlog
from skyfarer.satellite.config import PipeConfig
from skyfarer.satellite.contracts import Fetcher, Forwarder
from skyfarer.satellite.memory import MemoryLimit, OutOfMemory
from skyfarer.satellite.plugins import Plugin
from skyfarer.satellite.sender import Sender
from skyfarer.satellite.tap import IN, Tap
from skyfarer.telemetry import table
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)

HANDOVER_S = 1.0  # for a fetcher to come to rest; the sender's batch is sent again by the next
EMPTY = Ledger(0, 0, 0, {})


@dataclass(frozen=True)
class Recipe:
    """All that a pipe is made from: made of an equal one, it would be the same."""

    config: PipeConfig
    client: Plugin
    directory: str


@dataclass
class Arrivals:
    """Records that came to this pipe since the program started; a pipe's successor goes on."""

    all: int = 0
    abandoned: int = 0


class Queued:
    """The part of a pipe that keeps and sends; a pipe that only asks its upstream has none."""

    def __init__(self, backlog: Backlog, sender: Sender, capacity_bytes: int) -> None:
        self.backlog = backlog
        self.sender = sender
        self.capacity_bytes = capacity_bytes


class Pipe:
    """The `Inlet` of its fetcher, or the `Append` behind its paths on shared servers.

    Starts at the sender and stops at the fetcher first: nothing is taken in unkept. Once stopped it
    is over; what it left waits in its directory for the next one. `running`: its queue is open.
    `sending`: and all of its parts are at work.
    """

    def __init__(
        self,
        recipe: Recipe,
        forwarder: Forwarder,
        queued: Queued | None,
        memory: MemoryLimit,
        tap: Tap,
        registry: Registry,
    ) -> None:
        self.recipe = recipe
        self.name = recipe.config.name
        self.forwarder = forwarder
        self.queued = queued
        self.fetcher: Fetcher | None = None
        self.arrivals = Arrivals()
        self._memory = memory
        self._tap = tap
        self._registry = registry
        self.running = False
        self.sending = False

    @property
    def backlog(self) -> Backlog:
        """PermanentError for a pipe that keeps nothing."""
        if self.queued is None:
            raise PermanentError(f"pipe {self.name} has no queue to keep records in")
        return self.queued.backlog

    @property
    def queue_id(self) -> str:
        return self.backlog.queue_id

    @property
    def writing(self) -> int:
        return self.backlog.writing

    def append(self, kind: int, payloads: Sequence[bytes]) -> object:
        """An `Append`: durable on return. Goes on working for its successor."""
        arrivals, count = self.arrivals, len(payloads)
        arrivals.all += count
        try:
            self._memory.admit(sum(map(len, payloads)))
            first = self.backlog.append(kind, payloads)
        except RetryableError as error:
            self._refuse(count, _passing(error))
            raise
        except PermanentError as error:
            self._refuse(count, "too_large" if isinstance(error, RecordTooLarge) else "failed")
            raise
        if self._tap.watchers:
            self._tap.offer(self.name, IN, kind, payloads)
        return first

    def _refuse(self, count: int, reason: str) -> None:
        self.arrivals.abandoned += count
        self._registry.inc(table.QUEUE_REJECTED, count, reason=reason)

    def ledger(self) -> Ledger:
        return EMPTY if self.queued is None else self.queued.backlog.ledger()

    async def start(self) -> None:
        """PermanentError when its queue cannot be had."""
        if self.queued is not None:
            self.queued.backlog.start()
        self.running = True
        await self._begin()

    async def take_over(self, old: Pipe) -> None:
        """Starts in the place of a running pipe, which is over afterwards. Nothing that arrives
        meanwhile is refused: the queue changes hands between two events of the loop."""
        self.arrivals = old.arrivals
        if self.queued is None or old.queued is None:
            await old.stop(0.0)
            await self.start()
            return
        await old.pause(HANDOVER_S, drain=False)
        before = old.queued.backlog
        before.stop(0.0)
        try:
            self.queued.backlog.start()
        except BaseException:
            before.start()
            raise
        old.queued, old.running = self.queued, False
        self.running = True
        await self._begin()
        old.forwarder = self.forwarder

    async def _begin(self) -> None:
        await (self.forwarder if self.queued is None else self.queued.sender).start()
        if self.fetcher is not None:
            await self.fetcher.start()
        self.sending = True

    async def pause(self, timeout_s: float, drain: bool) -> None:
        """Fetches and sends no more, and still keeps what comes."""
        self.sending = False
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        if self.fetcher is not None:
            await self.fetcher.stop(timeout_s / 2)
        sending = self.forwarder if self.queued is None else self.queued.sender
        await sending.stop(max(0.0, deadline - loop.time()) if drain else 0.0)

    async def stop(self, timeout_s: float, silently: bool = False) -> None:
        """Hands over what it can in this time, and says what it left. Safe twice and unstarted."""
        if not self.running:
            return
        self.running = False
        try:
            await self.pause(timeout_s, drain=True)
            if self.queued is not None and not silently:
                self._say_what_is_left(self.ledger())
        finally:
            if self.queued is not None:
                self.queued.backlog.stop(0.0)

    def _say_what_is_left(self, ledger: Ledger) -> None:
        level = logging.WARNING if ledger.queued else logging.INFO
        left = f"; {ledger.queued} records wait on disk for the next start" if ledger.queued else ""
        log.log(level, "pipe %s stopped: %s%s", self.name, ledger, left)

    def observe(self) -> None:
        """Shows its numbers at every scrape from now on, in place of its predecessor's."""
        pipe, arrivals, observe = self.name, self.arrivals, self._registry.observe_with
        came = table.GATHERER_FETCH_COUNT if self.fetcher else table.GATHERER_RECEIVE_COUNT
        observe(came, lambda: arrivals.all, pipe=pipe, status="all")
        observe(came, lambda: arrivals.abandoned, pipe=pipe, status="abandoned")
        if self.queued is None:
            return
        backlog, capacity_bytes = self.queued.backlog, self.queued.capacity_bytes
        observe(table.GATHERER_WRITING_OFFSET, lambda: backlog.writing, pipe=pipe)
        observe(table.GATHERER_WATERMARK_OFFSET, lambda: backlog.watermark, pipe=pipe)
        observe(table.SENDER_COMMITTED_OFFSET, lambda: backlog.committed, pipe=pipe)
        observe(table.QUEUE_OUTPUT_COUNT, lambda: _left(backlog)[0], pipe=pipe, status="success")
        observe(table.QUEUE_OUTPUT_COUNT, lambda: _left(backlog)[1], pipe=pipe, status="error")
        observe(table.PIPELINE_QUEUE_CAPACITY, lambda: capacity_bytes, pipeline=pipe)
        observe(table.PIPELINE_QUEUE_SIZE, lambda: backlog.used_bytes, pipeline=pipe, partition="0")
        backlog.watch.register(self._registry, pipe)

    def unobserve(self) -> None:
        self._registry.unobserve(pipe=self.name)
        self._registry.unobserve(pipeline=self.name)
        self._registry.unobserve(queue=self.name)


def _passing(error: RetryableError) -> str:
    if isinstance(error, OutOfMemory):
        return "memory"
    return "full" if isinstance(error, QueueFull) else "failed"


def _left(backlog: Backlog) -> tuple[int, int]:
    """Records that left the queue: readable, and not."""
    unreadable = backlog.ledger().dropped.get(CORRUPT, 0)
    return backlog.committed - unreadable, unreadable

"""The queue of one pipe as its two ends see it: append on one side, batches on the other.

Invariants:
- `committed` never passes a record that was not delivered or dropped under a reason.
- What is taken stays readable until it is settled, even if the writer gives its segment up
  meanwhile (drop_oldest); so it still counts as queued, not as dropped.
- Nothing here polls: an append wakes the sender, and a full batch cuts its waiting short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.queue.capacity import Watch
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.flusher import Flusher
from skyfarer.queue.reader import Reader
from skyfarer.queue.run import OVERFLOW, Run
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.satellite.contracts import Batch, Gap
from skyfarer.satellite.epoch import epoch
from skyfarer.telemetry.ledger import Ledger

CONSUMER = "sender"
# For a flush that runs: left alone, the next start would take what it covers for suspect.
FLUSH_GRACE_S = 5.0


@dataclass(frozen=True)
class BatchBounds:
    """A batch is sent when it has this many records or bytes, or when its first is this old."""

    records_max: int
    bytes_max: int
    age_max_s: float


class Backlog:
    """One event loop, one thread; one sender takes, any number of callers append."""

    def __init__(self, settings: QueueSettings, bounds: BatchBounds, clock: Clock) -> None:
        self._writer = Writer(settings)
        self._flusher = Flusher(self._writer, settings)
        self._reader = Reader(settings.directory, settings.segments_mapped_max)
        self._consumer = Consumer(
            settings.directory, CONSUMER, durable=settings.durability == "fsync"
        )
        self.watch = Watch(settings.directory, clock)
        self._bounds = bounds
        self._clock = clock
        self._arrived = asyncio.Event()
        self._ready = asyncio.Event()
        self._hurrying = False
        self._directory = settings.directory
        self._epoch = ""
        self._taken_end = 0
        self._fresh_bytes = 0
        self._oldest_fresh_s: float | None = None

    def start(self) -> None:
        """May block on the recovery of the queue. PermanentError if another process has it."""
        self._writer.start()
        self._consumer.start()
        self._reader.start()
        self._epoch = epoch(self._directory)
        self._taken_end = self._consumer.committed()
        self._flusher.start()

    def stop(self, timeout_s: float) -> None:
        self._flusher.stop(max(timeout_s, FLUSH_GRACE_S))
        self._reader.stop()
        self._consumer.stop()
        self._writer.stop(timeout_s)

    @property
    def queue_id(self) -> str:
        return self._writer.queue_id

    @property
    def producer(self) -> str:
        """Who gave a record its number: with it, the number names no other record. Once started."""
        return f"{self._writer.queue_id}-{self._epoch}"

    @property
    def writing(self) -> int:
        return self._writer.writing

    @property
    def watermark(self) -> int:
        """No power cut takes what is below: it is on the disk, or delivered."""
        return max(self._writer.durable, self.committed)

    @property
    def committed(self) -> int:
        return self._consumer.committed()

    @property
    def used_bytes(self) -> int:
        """On disk, of records not settled, in whole segments."""
        return self._writer.used_bytes

    def append(self, kind: int, payloads: Sequence[bytes]) -> int:
        """An `Append`; what the queue raises goes through to the caller."""
        first = self._writer.append(kind, payloads)
        self._fresh_bytes += sum(map(len, payloads))
        if self._oldest_fresh_s is None:
            self._oldest_fresh_s = self._clock.monotonic_s()
        self._arrived.set()
        if self._batch_is_full():
            self._ready.set()
        return first

    def hurry(self) -> None:
        """From now on nothing waits for company: the program is about to stop."""
        self._hurrying = True
        self._ready.set()

    async def wait(self) -> None:
        """Returns when there is a batch worth taking: full, or its oldest record old enough."""
        while self._untaken() == 0:
            self._arrived.clear()
            await self._arrived.wait()
        self._ready.clear()
        if self._hurrying or self._batch_is_full():
            return
        remaining_s = self._remaining_s()
        if remaining_s > 0:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(remaining_s, self._ready.set)
            try:
                await self._ready.wait()
            finally:
                timer.cancel()

    def take(self) -> list[Batch | Gap]:
        """The next records in order, at most one batch's worth of them; each must be settled.

        Asks for at least one to be there, as after `wait`. A piece ends where the kind changes.
        """
        start, writing = self._taken_end, self._writer.writing
        oldest = self._writer.oldest
        if start < oldest:
            self._taken_end = oldest
            return [Gap(start, oldest, OVERFLOW)]
        end = min(writing, start + self._bounds.records_max)
        run = next(iter(self._reader.runs(start, end, self._bounds.bytes_max)), None)
        if run is None:
            raise PermanentError(f"the queue has record {start} and its reader shows none")
        pieces = list(_pieces(run))
        self._taken_end = run.end
        self._fresh_bytes = max(0, self._fresh_bytes - sum(map(_bytes_of, pieces)))
        if self._taken_end == writing:
            self._oldest_fresh_s, self._fresh_bytes = None, 0
        return pieces

    def rewind(self) -> None:
        """Forgets what was taken and not settled; it will be taken again."""
        self._taken_end = self._consumer.committed()

    def settle(self, end: int, dropped: Mapping[str, int] = MappingProxyType({})) -> None:
        """Everything before `end` is delivered, but for so many of it; both move in one write."""
        self._consumer.commit(end, dropped)

    def ledger(self) -> Ledger:
        committed, writing = self._consumer.committed(), self._writer.writing
        dropped = self._consumer.dropped()
        delivered = committed - sum(dropped.values())
        lost = max(0, self._writer.oldest - max(committed, self._taken_end))
        if lost:
            dropped[OVERFLOW] = dropped.get(OVERFLOW, 0) + lost
        return Ledger(writing, delivered, writing - committed - lost, dropped)

    def _untaken(self) -> int:
        return self._writer.writing - self._taken_end

    def _batch_is_full(self) -> bool:
        bounds = self._bounds
        return self._untaken() >= bounds.records_max or self._fresh_bytes >= bounds.bytes_max

    def _remaining_s(self) -> float:
        if self._oldest_fresh_s is None:
            return 0.0
        age_s = self._clock.monotonic_s() - self._oldest_fresh_s
        return self._bounds.age_max_s - age_s


def _pieces(run: Run) -> Iterator[Batch | Gap]:
    """Splits a run where the kind changes and where records are lost."""
    sequences, kinds, payloads = run.sequences(), run.kinds(), run.payloads()
    if kinds and not run.damaged and kinds.count(kinds[0]) == run.count:
        yield Batch(run.first, kinds[0], tuple(payloads))
        return
    settled, start = run.first, 0
    while start < len(sequences):
        if sequences[start] > settled:
            yield Gap(settled, sequences[start], run.reason)
        end = start + 1
        while (
            end < len(sequences)
            and kinds[end] == kinds[start]
            and sequences[end] == sequences[end - 1] + 1
        ):
            end += 1
        yield Batch(sequences[start], kinds[start], tuple(payloads[start:end]))
        settled, start = sequences[end - 1] + 1, end
    if settled < run.end:
        yield Gap(settled, run.end, run.reason)


def _bytes_of(piece: Batch | Gap) -> int:
    return sum(map(len, piece.payloads)) if isinstance(piece, Batch) else 0

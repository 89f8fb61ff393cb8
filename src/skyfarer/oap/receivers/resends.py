"""The door of the ingest queue that knows what it has: a satellite's record is kept once.

A satellite that got no answer sends its batch again, and says which records those are
(`wire.numbering`). What the queue has is acknowledged and dropped; all else is kept, whatever its
number: a record may come late, behind others, because the satellite doubted it. What was known and
is forgotten is kept, too, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from skyfarer.oap.receivers.held import Held
from skyfarer.oap.receivers.journal import Journal, Note
from skyfarer.oap.receivers.producers import Bounds, Producers
from skyfarer.queue.writer import Writer
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.numbering import Number, Numbered
from skyfarer.wire.split import join_repeated, split_repeated

# Reasons a record was dropped for: of the batch in flight, or from before it.
RESENT, SETTLED = "resent", "settled"
# Reasons to keep what may have been kept before.
FORGOTTEN, UNREADABLE, UNLISTED, INSEPARABLE = "forgotten", "unreadable", "unlisted", "inseparable"
_PACKED: Final = 1  # the field whose elements are the records that one message is made of


class Resends:
    """`append` is an `Append`, durable on return, in the one thread of the queue's writer. Others
    may append to the queue beside it, there. Started after the queue and stopped before it; safe to
    stop twice and unstarted. What it keeps in `directory`, the queue's, is written by stores into
    a mapped file: a killed process loses none of it."""

    def __init__(
        self,
        queue: Writer,
        directory: Path,
        registry: Registry,
        bounds: Bounds | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._queue = queue
        self._registry = registry
        self._bounds = bounds
        self._journal = journal or Journal(directory)
        self._producers = Producers(bounds)

    def start(self) -> None:
        """RetryableError or PermanentError when its file cannot be written."""
        queue_id = bytes.fromhex(self._queue.queue_id)
        self._producers = self._journal.load(queue_id, self._queue.writing, self._bounds)
        forgotten = table.RECEIVER_PRODUCERS_FORGOTTEN
        self._registry.observe_with(forgotten, lambda: self._producers.forgotten)
        self._registry.observe_with(table.RECEIVER_PRODUCERS, lambda: len(self._producers))

    def stop(self) -> None:
        self._journal.close()

    def append(self, kind: int, payloads: Sequence[bytes]) -> None:
        """As the queue's; but what it has already of a `Numbered` is dropped."""
        if not isinstance(payloads, Numbered):
            self._queue.append(kind, payloads)
            return
        if not payloads.producer:
            self._queue.append(kind, payloads)
            self._unsure(UNREADABLE, len(payloads))
            return
        held = self._producers.known(payloads.producer)
        if (run := _run(payloads.numbers)) and run.start >= max(held.end, held.floor):
            self._keep(kind, payloads, payloads, run)
            return
        sifted = _Sifted(payloads, held)
        if sifted.numbers:
            self._keep(kind, sifted.payloads, payloads, sifted.numbers)
        if sifted.unlisted:
            self._queue.append(kind, sifted.unlisted)
        for reason, records in sifted.dropped.items():
            self._registry.inc(table.RECEIVER_REPEATS, records, reason=reason)
        for reason, records in sifted.unsure.items():
            self._unsure(reason, records)

    def _keep(
        self, kind: int, payloads: Sequence[bytes], said: Numbered, numbers: Sequence[Number]
    ) -> None:
        queue, producer, first = self._queue, said.producer, said.first
        at = queue.writing
        place = self._journal.write(Note(at, producer, first, numbers), self._producers)
        try:
            queue.append(kind, payloads)
        except BaseException:
            kept = queue.writing - at
            self._journal.lower(place, kept)
            self._producers.add(producer, first, numbers[:kept])
            raise
        self._producers.add(producer, first, numbers)

    def _unsure(self, reason: str, records: int) -> None:
        self._registry.inc(table.RECEIVER_UNSURE, records, reason=reason)


def _run(numbers: Sequence[Number]) -> range | None:
    """The same, if they are one after the other, as they are but for resends."""
    first = numbers[0] if numbers else None
    if not isinstance(first, int):
        return None
    run = range(first, first + len(numbers))
    return run if numbers == list(run) else None


class _Sifted:
    """What there is to do for the payloads of one call."""

    def __init__(self, said: Numbered, held: Held) -> None:
        self.payloads: list[bytes] = []
        self.numbers: list[Number] = []
        self.unlisted: list[bytes] = []
        self.dropped: dict[str, int] = {}
        self.unsure: dict[str, int] = {}
        self._held = held
        self._settled = max(held.settled, said.first)
        self._here: set[int] = set()
        for payload, number in zip(said, said.numbers, strict=True):
            if isinstance(number, int):
                self._single(payload, number)
            elif number:
                self._packed(payload, number)
            else:
                self.unlisted.append(payload)
        if self.unlisted:
            self.unsure[UNLISTED] = len(self.unlisted)

    def _single(self, payload: bytes, number: int) -> None:
        if self._known(number):
            self._drop((number,))
        else:
            self._take(payload, number, (number,))

    def _packed(self, payload: bytes, numbers: tuple[int, ...]) -> None:
        """A message made of several records, of which the queue may have some: a satellite that
        was killed makes its batches anew, and packs them otherwise."""
        repeats = [number for number in numbers if self._known(number)]
        if len(repeats) == len(numbers):
            self._drop(numbers)
            return
        if repeats:
            elements = split_repeated(payload, _PACKED) or []
            if len(elements) != len(numbers):
                _count(self.unsure, INSEPARABLE, len(repeats))
            else:
                rest = [n for n, number in enumerate(numbers) if number not in repeats]
                payload = join_repeated([elements[n] for n in rest], _PACKED)
                numbers = tuple(numbers[n] for n in rest)
                self._drop(repeats)
        self._take(payload, numbers, numbers)

    def _known(self, number: int) -> bool:
        return number in self._here or self._held.has(number)

    def _take(self, payload: bytes, number: Number, numbers: Sequence[int]) -> None:
        self.payloads.append(payload)
        self.numbers.append(number)
        self._here.update(numbers)
        for one in numbers:
            if one < self._held.floor:
                _count(self.unsure, FORGOTTEN, 1)

    def _drop(self, numbers: Sequence[int]) -> None:
        for one in numbers:
            _count(self.dropped, SETTLED if one < self._settled else RESENT, 1)


def _count(counts: dict[str, int], reason: str, records: int) -> None:
    counts[reason] = counts.get(reason, 0) + records

"""What comes out at the end of the filters, put together into batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from skyfarer.satellite.contracts import Batch, Loss, Processed
from skyfarer.satellite.processors.event import Event


class Passage:
    """Of one batch; its records are added in order, each as kept or as lost."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._numbers: list[int] = []
        self._kinds: list[int] = []
        self._payloads: list[bytes | memoryview] = []
        self._losses: list[Loss] = []
        self._emitted: list[tuple[int, int, bytes | memoryview]] = []

    def keep(self, event: Event) -> None:
        self._numbers.append(event.sequence)
        self._kinds.append(event.kind)
        self._payloads.append(event.encoded())

    def lose(self, loss: Loss) -> None:
        """Neighbours dropped for one reason become one loss."""
        if self._losses and not loss.payloads:
            last = self._losses[-1]
            if last.end == loss.first and last.reason == loss.reason and not last.payloads:
                loss = Loss(last.first, loss.end, loss.reason)
                del self._losses[-1]
        self._losses.append(loss)

    def emit(self, event: Event) -> None:
        self._emitted.append((event.kind, event.sequence, event.encoded()))

    def processed(self) -> Processed:
        return Processed(tuple(self._outgoing()), tuple(self._losses), tuple(self._made()))

    def _outgoing(self) -> Iterator[Batch]:
        """Together they answer for the whole batch, unless nothing of it is left."""
        numbers, kinds = self._numbers, self._kinds
        first, start = self._batch.first, 0
        for kind, same in groupby(kinds):
            stop = start + sum(1 for _ in same)
            beyond = numbers[stop] if stop < len(numbers) else self._batch.end
            kept = tuple(numbers[start:stop])
            if kept[0] == first and kept[-1] - first == stop - start - 1:
                kept = ()
            yield Batch(first, kind, tuple(self._payloads[start:stop]), kept, beyond)
            first, start = beyond, stop

    def _made(self) -> Iterator[Batch]:
        for kind, same in groupby(self._emitted, key=lambda made: made[0]):
            made = list(same)
            payloads = tuple(payload for _, _, payload in made)
            yield Batch(made[0][1], kind, payloads, emitted=True)

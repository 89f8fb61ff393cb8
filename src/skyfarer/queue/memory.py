"""The queue without files: the contract of `contracts.py` in one process, gone with it.

For programs that may lose what they hold, and for tests. The parts may live in different threads.
Runs are copies, so they stay as they are for good.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import MIB
from skyfarer.queue.checkpoint import Checkpoint
from skyfarer.queue.errors import QueueLocked, QueueMissing, RecordTooLarge
from skyfarer.queue.held import RECORD_OVERHEAD_BYTES, Held, MemorySettings
from skyfarer.queue.records import KIND_MAX
from skyfarer.queue.run import OVERFLOW, Run

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class MemoryQueue:
    """Holds the records for as long as it lives, whichever of its parts are started."""

    def __init__(self, settings: MemorySettings) -> None:
        self._held = Held(settings)
        self.writer = MemoryWriter(self._held)

    def reader(self) -> MemoryReader:
        return MemoryReader(self._held)

    def consumer(self, name: str = "main") -> MemoryConsumer:
        return MemoryConsumer(self._held, name)


class MemoryWriter:
    """`contracts.AnyWriter`. A queue has this one and no other, so none is ever refused."""

    def __init__(self, held: Held) -> None:
        self.queue_id = ""
        self._held = held
        self._started = False

    def start(self) -> None:
        held = self._held
        with held.changed:
            if not held.places:
                held.queue_id = uuid.uuid4().hex
                held.places = {name: Checkpoint(0, 0) for name in held.settings.consumers}
        self.queue_id, self._started = held.queue_id, True

    def stop(self, timeout_s: float) -> None:
        self._started = False

    def append(self, kind: int, payloads: Sequence[bytes | memoryview]) -> int:
        if not self._started:
            raise PermanentError("memory queue: append before start or after stop")
        if not 0 < kind <= KIND_MAX:
            raise PermanentError(f"memory queue: a kind is between 1 and {KIND_MAX}, not {kind}")
        if any(memoryview(payload).nbytes != len(payload) for payload in payloads):
            raise PermanentError(
                "memory queue: a payload must be bytes, not a view of larger items"
            )
        bounds, lengths = self._held.settings, list(map(len, payloads))
        wanted = sum(lengths) + len(lengths) * RECORD_OVERHEAD_BYTES
        if max(lengths, default=0) > bounds.record_bytes_max or wanted > bounds.capacity_bytes:
            raise RecordTooLarge(
                f"memory queue: {len(lengths)} records, the largest of {max(lengths)} bytes, are "
                f"above record_bytes_max, {bounds.record_bytes_max}, or need more than "
                f"capacity_bytes, {bounds.capacity_bytes}, in all"
            )
        with self._held.changed:
            return self._held.add(kind, payloads, wanted)

    @property
    def writing(self) -> int:
        return self._held.writing

    @property
    def oldest(self) -> int:
        return self._held.oldest

    @property
    def dropped(self) -> int:
        held = self._held
        with held.changed:
            return max(
                (
                    place.dropped.get(OVERFLOW, 0) + max(0, held.oldest - place.committed)
                    for place in held.places.values()
                ),
                default=0,
            )


class MemoryReader:
    """`contracts.AnyReader`."""

    def __init__(self, held: Held) -> None:
        self.queue_id = ""
        self._held = held

    def start(self) -> None:
        if not self._held.places:
            raise QueueMissing("the memory queue has no records yet; its writer starts it")
        self.queue_id = self._held.queue_id

    def stop(self, timeout_s: float = 0.0) -> None:
        self.queue_id = ""

    def writing(self) -> int:
        return self._started().writing

    def oldest(self) -> int:
        return self._started().oldest

    def wait(self, beyond: int, timeout_s: float) -> bool:
        held = self._started()
        with held.changed:
            return held.changed.wait_for(lambda: self.writing() > beyond, timeout_s)

    def runs(self, start: int, end: int, bytes_max: int = 64 * MIB) -> Iterator[Run]:
        end = min(end, self._started().writing)
        while start < end:
            held = self._started()
            with held.changed:
                run = held.run(start, end, bytes_max)
            yield run
            start = run.end

    def _started(self) -> Held:
        if not self.queue_id:
            raise PermanentError("memory queue: read before start or after stop")
        return self._held


class MemoryConsumer:
    """`contracts.AnyConsumer`."""

    def __init__(self, held: Held, name: str) -> None:
        self._held = held
        self._name = name
        self._started = False
        self._checkpoint = Checkpoint(0, 0)

    def start(self) -> None:
        if self._started:
            return
        held, name = self._held, self._name
        with held.changed:
            if name not in held.places:
                raise QueueMissing(f"memory queue: no consumer {name!r} yet; see its 'consumers'")
            if name in held.in_use:
                raise QueueLocked(f"memory queue: consumer {name!r} is in use")
            held.in_use.add(name)
            self._checkpoint, self._started = held.places[name], True

    def stop(self, timeout_s: float = 0.0) -> None:
        with self._held.changed:
            if self._started:
                self._held.in_use.remove(self._name)
            self._started = False

    def committed(self) -> int:
        return self._checkpoint.committed

    def dropped(self) -> dict[str, int]:
        return dict(self._checkpoint.dropped)

    def commit(self, sequence: int, dropped: Mapping[str, int] = _NOTHING) -> None:
        if not self._started:
            raise PermanentError(f"memory queue: {self._name!r} commits before start or after stop")
        now, held = self._checkpoint, self._held
        if sequence == now.committed and not dropped:
            return
        then = now.advanced(sequence, dropped)
        with held.changed:
            if not now.committed <= sequence <= held.writing:
                raise PermanentError(
                    f"memory queue: cannot commit {sequence}, which is not between the committed "
                    f"{now.committed} and the written {held.writing}"
                )
            if min(dropped.values(), default=0) < 0 or sum(then.dropped.values()) > sequence:
                raise PermanentError(f"{dict(dropped)} is not a count of passed records")
            self._checkpoint = held.places[self._name] = then
            held.forget_committed()

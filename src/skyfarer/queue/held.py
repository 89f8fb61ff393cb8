"""Records held in memory, within a bound: what the parts of a `MemoryQueue` share.

Records are kept under their number, so finding one costs the same whatever is queued. A record is
forgotten as soon as every consumer has committed it. Whoever calls holds `changed`, the one lock;
waiting on it is how a reader sleeps until there is something to read, and a writer for room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Condition
from typing import Final, Literal

from skyfarer.base.errors import ConfigError
from skyfarer.base.units import MIB
from skyfarer.queue.checkpoint import Checkpoint
from skyfarer.queue.errors import QueueFull
from skyfarer.queue.records import crcs_of, seal
from skyfarer.queue.run import OVERFLOW, Run, lost
from skyfarer.queue.settings import BLOCK_TIMEOUT_S_MAX, CAPACITY_BYTES_MAX, CONSUMER_NAME

# What Python keeps around a record: three objects, and a row of a table that doubles when it grows.
RECORD_OVERHEAD_BYTES: Final = 384
RUN_RECORDS_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """As in `QueueSettings`; `capacity_bytes` includes RECORD_OVERHEAD_BYTES for each record."""

    capacity_bytes: int = 64 * MIB
    record_bytes_max: int = 4 * MIB
    when_full: Literal["reject", "drop_oldest", "block"] = "reject"
    consumers: tuple[str, ...] = ("main",)
    block_timeout_s: float = 5.0

    def __post_init__(self) -> None:
        if self.capacity_bytes > CAPACITY_BYTES_MAX:
            raise ConfigError(
                f"memory queue: capacity_bytes must be at most {CAPACITY_BYTES_MAX}, "
                f"not {self.capacity_bytes}"
            )
        room = self.capacity_bytes - RECORD_OVERHEAD_BYTES
        if not 0 < self.record_bytes_max <= room:
            raise ConfigError(
                f"memory queue: record_bytes_max must be between 1 and the {max(0, room)} bytes "
                f"that capacity_bytes leaves for one record, not {self.record_bytes_max}"
            )
        if self.when_full not in ("reject", "drop_oldest", "block"):
            raise ConfigError(
                "memory queue: when_full must be 'reject', 'drop_oldest' or 'block', "
                f"not {self.when_full!r}"
            )
        if not 0 < self.block_timeout_s <= BLOCK_TIMEOUT_S_MAX:
            raise ConfigError(
                f"memory queue: block_timeout_s must be above 0 and at most {BLOCK_TIMEOUT_S_MAX}, "
                f"not {self.block_timeout_s}"
            )
        if not self.consumers or len(set(self.consumers)) != len(self.consumers):
            raise ConfigError("memory queue: consumers must name at least one, and each once")
        for name in self.consumers:
            if not CONSUMER_NAME.fullmatch(name):
                raise ConfigError(f"memory queue: {name!r} must be letters, digits, '_' or '-'")


@dataclass(slots=True)
class Held:
    """`places` is empty until the writer has started once."""

    settings: MemorySettings
    queue_id: str = ""
    writing: int = 0
    oldest: int = 0
    taken_bytes: int = 0
    records: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    places: dict[str, Checkpoint] = field(default_factory=dict)
    in_use: set[str] = field(default_factory=set)
    changed: Condition = field(default_factory=Condition)

    def add(self, kind: int, payloads: Sequence[bytes | memoryview], wanted_bytes: int) -> int:
        spare = self.settings.capacity_bytes - wanted_bytes
        if self.settings.when_full == "block":
            self.changed.wait_for(lambda: self.taken_bytes <= spare, self.settings.block_timeout_s)
        if self.taken_bytes > spare and self.settings.when_full != "drop_oldest":
            raise QueueFull(
                f"the memory queue is full: its slowest consumer is at {self.oldest}, "
                f"{self.writing - self.oldest} records behind the writer"
            )
        while self.taken_bytes > spare:
            self.forget_oldest()
        first = self.writing
        for payload in payloads:
            self.records[self.writing] = (kind, bytes(payload))
            self.writing += 1
        self.taken_bytes += wanted_bytes
        self.changed.notify_all()
        return first

    def forget_oldest(self) -> None:
        _, payload = self.records.pop(self.oldest)
        self.taken_bytes -= len(payload) + RECORD_OVERHEAD_BYTES
        self.oldest += 1

    def forget_committed(self) -> None:
        slowest = min(place.committed for place in self.places.values())
        while self.oldest < slowest:
            self.forget_oldest()
        self.changed.notify_all()

    def run(self, start: int, end: int, bytes_max: int) -> Run:
        """A copy, so that nothing is changed under it and its payloads lie back to back."""
        if start < self.oldest:
            return lost(start, min(end, self.oldest), OVERFLOW)
        found = [self.records[start]]
        room = bytes_max - len(found[0][1])
        for sequence in range(start + 1, min(end, start + RUN_RECORDS_MAX)):
            record = self.records[sequence]
            room -= len(record[1])
            if room < 0:
                break
            found.append(record)
        starts = accumulate((len(payload) for _, payload in found), initial=0)
        rows = zip(starts, found, strict=False)
        index = b"".join(
            seal(n, at, kind, [len(payload)], crcs_of([payload], 0)).tobytes()
            for n, (at, (kind, payload)) in enumerate(rows)
        )
        data = b"".join(payload for _, payload in found)
        return Run(start, len(found), memoryview(index), memoryview(data))

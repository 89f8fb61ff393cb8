"""What a queue is made of, checked before a byte is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skyfarer.base.errors import ConfigError
from skyfarer.base.units import GIB, MIB
from skyfarer.queue.layout import PAGE_BYTES, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, Geometry

CONSUMER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
CAPACITY_BYTES_MAX = 1024 * GIB
SEGMENTS_MAX = 65_536  # a start looks into each, and a name has five digits
BLOCK_TIMEOUT_S_MAX = 60.0
SEGMENTS_MAPPED_MAX = 64
FLUSH_PERIOD_MS_MAX = 60_000
FLUSH_COUNT_MAX = 100_000_000


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """`segment_bytes` and `capacity_bytes` are fixed with the directory; the rest may change. The
    ring has as many whole segments as `capacity_bytes` holds, so what is over is not used.

    `consumers` are those a segment waits for before it is reused. `when_full` is what happens when
    they are too slow: "reject" refuses the new batch, "drop_oldest" gives up the oldest segment,
    "block" waits up to `block_timeout_s` for them and then refuses.

    `durability` is what an append that returned has survived: with "append" the end of the process,
    with "fsync" a power cut as well. Under "append" a `Flusher` beside the writer sees to that
    every `flush_period_ms`, 0 being never, or `flush_count` records. `segments_mapped_max` is for
    readers: what they may have in memory at a time.
    """

    directory: Path
    segment_bytes: int = 16 * MIB
    capacity_bytes: int = 512 * MIB
    record_bytes_max: int = 4 * MIB
    when_full: Literal["reject", "drop_oldest", "block"] = "reject"
    consumers: tuple[str, ...] = ("main",)
    durability: Literal["append", "fsync"] = "append"
    block_timeout_s: float = 5.0
    flush_period_ms: int = 1000
    flush_count: int = 10_000
    segments_mapped_max: int = 2

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise ConfigError(f"queue {self.directory}: {fault}")

    @property
    def geometry(self) -> Geometry:
        return Geometry(self.segment_bytes, self.capacity_bytes // self.segment_bytes)

    def _faults(self) -> list[str]:
        size = self.segment_bytes
        if not SEGMENT_BYTES_MIN <= size <= SEGMENT_BYTES_MAX or size % PAGE_BYTES:
            return [
                f"segment_bytes must be a multiple of {PAGE_BYTES} between {SEGMENT_BYTES_MIN} "
                f"and {SEGMENT_BYTES_MAX}, not {size}"
            ]
        if not 2 * size <= self.capacity_bytes <= CAPACITY_BYTES_MAX:
            return [
                f"capacity_bytes must be between two segments ({2 * size}) "
                f"and {CAPACITY_BYTES_MAX}, not {self.capacity_bytes}"
            ]
        if self.geometry.segments > SEGMENTS_MAX:
            return [
                f"capacity_bytes {self.capacity_bytes} in segments of {size} bytes would be "
                f"{self.geometry.segments} files, and at most {SEGMENTS_MAX} are allowed; "
                "make segment_bytes larger"
            ]
        room = self.geometry.payload_bytes
        if not 0 < self.record_bytes_max <= room:
            return [
                f"record_bytes_max must be between 1 and the {room} bytes of records "
                f"one segment holds, not {self.record_bytes_max}"
            ]
        return self._policy_faults() or self._consumer_faults()

    def _policy_faults(self) -> list[str]:
        if self.when_full not in ("reject", "drop_oldest", "block"):
            return [
                f"when_full must be 'reject' or 'drop_oldest' or 'block', not {self.when_full!r}"
            ]
        if self.durability not in ("append", "fsync"):
            return [f"durability must be 'append' or 'fsync', not {self.durability!r}"]
        if not 0 < self.block_timeout_s <= BLOCK_TIMEOUT_S_MAX:
            return [
                f"block_timeout_s must be above 0 and at most {BLOCK_TIMEOUT_S_MAX}, "
                f"not {self.block_timeout_s}"
            ]
        if not 1 <= self.segments_mapped_max <= SEGMENTS_MAPPED_MAX:
            return [
                f"segments_mapped_max must be between 1 and {SEGMENTS_MAPPED_MAX}, "
                f"not {self.segments_mapped_max}"
            ]
        if not 0 <= self.flush_period_ms <= FLUSH_PERIOD_MS_MAX:
            return [
                f"flush_period_ms must be between 0, which is never, and {FLUSH_PERIOD_MS_MAX}, "
                f"not {self.flush_period_ms}"
            ]
        if not 1 <= self.flush_count <= FLUSH_COUNT_MAX:
            return [f"flush_count must be between 1 and {FLUSH_COUNT_MAX}, not {self.flush_count}"]
        return []

    def _consumer_faults(self) -> list[str]:
        if not self.consumers or len(set(self.consumers)) != len(self.consumers):
            return ["consumers must name at least one consumer, and each once"]
        return [
            f"consumer name {name!r} must be letters, digits, '_' or '-', at most 64"
            for name in self.consumers
            if not CONSUMER_NAME.fullmatch(name)
        ]

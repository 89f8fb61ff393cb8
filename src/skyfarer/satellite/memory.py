"""The bound on this process's own memory: beyond it nothing more is taken in.

What counts is resident memory without the pages of files, which are the kernel's to take back: the
queue's segments and the program's own code are such. It is measured when so much has arrived since
the last time that it matters, or that the limit would be reached were all of it still held; not by
a timer.
"""

from __future__ import annotations

import gc
import logging
import os
from pathlib import Path
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.base.errors import RetryableError
from skyfarer.base.units import MIB

log = logging.getLogger(__name__)

MEASURE_EVERY_BYTES: Final = 1 * MIB
MEASURE_EVERY_S: Final = 0.2
CLEAN_EVERY_S: Final = 5.0
STATM: Final = Path("/proc/self/statm")


class OutOfMemory(RetryableError):  # noqa: N818 - a state, as in the queue's errors
    """The limit is reached; the same may be taken once others are through."""


class MemoryLimit:
    """`bytes_max` 0 is no limit. Event loop only; `admit` never blocks."""

    def __init__(self, bytes_max: int, clock: Clock, statm: Path = STATM) -> None:
        self.bytes_max = bytes_max
        self._clock = clock
        self._statm = statm
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._measured_bytes = 0
        self._measured_s = float("-inf")
        self._cleaned_s = float("-inf")
        self._arrived_bytes = 0
        self.exceeded = False

    def admit(self, payload_bytes: int) -> None:
        """OutOfMemory when these bytes must be refused."""
        if not self.bytes_max:
            return
        self._arrived_bytes += payload_bytes
        possible = self._measured_bytes + self._arrived_bytes
        if self.exceeded or self._arrived_bytes >= MEASURE_EVERY_BYTES or possible > self.bytes_max:
            self._judge()
        if self.exceeded:
            raise OutOfMemory(
                f"the satellite holds {self._measured_bytes} bytes of memory, its limit is"
                f" {self.bytes_max}; send again later"
            )

    def still_exceeded(self) -> bool:
        """Looked at again, since nobody else does while nothing arrives."""
        if self.exceeded:
            self._judge()
        return self.exceeded

    def own_bytes(self) -> int:
        _, resident, of_files = self._statm.read_text().split()[:3]
        return (int(resident) - int(of_files)) * self._page_bytes

    def _judge(self) -> None:
        now_s = self._clock.monotonic_s()
        if self.exceeded and now_s - self._measured_s < MEASURE_EVERY_S:
            return
        self._measure(now_s)
        if self._too_much() and now_s - self._cleaned_s >= CLEAN_EVERY_S:
            self._cleaned_s = now_s
            give_back()
            self._measure(now_s)
        exceeded = self._too_much()
        if exceeded != self.exceeded:
            words = "is reached: nothing is taken in" if exceeded else "is kept again"
            log.warning("memory_limit of %d bytes %s", self.bytes_max, words)
        self.exceeded = exceeded

    def _measure(self, now_s: float) -> None:
        self._measured_bytes, self._measured_s = self.own_bytes(), now_s
        self._arrived_bytes = 0

    def _too_much(self) -> bool:
        return self._measured_bytes > self.bytes_max


def give_back() -> None:
    """Unreachable cycles to the allocator, and what the allocator only keeps to the kernel: after
    a start 1.5 MB. Takes some milliseconds."""
    gc.collect()
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

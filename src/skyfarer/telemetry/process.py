"""The process as Linux sees it, read from /proc when the metrics are asked for."""

from __future__ import annotations

import os
from pathlib import Path

from skyfarer import __version__
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry


class ProcessMetrics:
    """`process` tells this one from the other processes of the program.

    `proc` is the mounted /proc, for which a test may hand in a directory of its own.
    """

    def __init__(self, process: str = "main", proc: Path = Path("/proc")) -> None:
        self._process = process
        self._proc = proc
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def register(self, registry: Registry) -> None:
        registry.set(table.BUILD_INFO, 1, process=self._process, version=__version__)
        registry.observe_with(table.PROCESS_CPU_SECONDS, self.cpu_s, process=self._process)
        registry.observe_with(
            table.PROCESS_RESIDENT_BYTES, self.resident_bytes, process=self._process
        )
        registry.observe_with(table.PROCESS_OPEN_FDS, self.open_fds, process=self._process)
        registry.observe_with(table.PROCESS_THREADS, self.threads, process=self._process)
        registry.observe_with(table.PROCESS_START_TIME, self.started_s, process=self._process)

    def cpu_s(self) -> float:
        return (int(self._stat(14)) + int(self._stat(15))) / self._ticks_per_s

    def resident_bytes(self) -> int:
        return int(self._stat(24)) * self._page_bytes

    def open_fds(self) -> int:
        return sum(1 for _ in (self._proc / "self" / "fd").iterdir())

    def threads(self) -> int:
        return int(self._stat(20))

    def started_s(self) -> float:
        lines = (self._proc / "stat").read_text().splitlines()
        boot_s = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
        return boot_s + int(self._stat(22)) / self._ticks_per_s

    def _stat(self, field: int) -> str:
        """Numbered from 1 as in proc(5); the second, the command, may itself hold spaces."""
        text = (self._proc / "self" / "stat").read_text()
        return text.rpartition(")")[2].split()[field - 3]

"""One small queue and the ways tests use it, for processes that have no need of pytest."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.disk import Disk
from skyfarer.queue.reader import Reader
from skyfarer.queue.run import Run
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

P = TypeVar("P", Writer, Reader, Consumer)


class UnsyncedDisk(Disk):
    """A killed process needs no fsync, and thousands of small queues are made here."""

    def sync(self, fd: int) -> None:
        pass


class Bench:
    """One queue directory and the ways tests use it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: list[Writer | Reader | Consumer] = []

    def settings(self, **changes: object) -> QueueSettings:
        shape: dict[str, object] = {
            "segment_bytes": 16 * KIB,
            "capacity_bytes": 64 * KIB,
            "record_bytes_max": 4 * KIB,
        }
        return QueueSettings(self.directory, **(shape | changes))  # type: ignore[arg-type]

    def writer(self, disk: Disk | None = None, **changes: object) -> Writer:
        return self._started(Writer(self.settings(**changes), disk or UnsyncedDisk()))

    def reader(self) -> Reader:
        return self._started(Reader(self.directory))

    def consumer(self, name: str = "main") -> Consumer:
        return self._started(Consumer(self.directory, name))

    def runs(self, start: int = 0) -> list[Run]:
        reader = self.reader()
        return list(reader.runs(start, reader.writing()))

    def records(self, start: int = 0) -> list[bytes]:
        return [bytes(payload) for run in self.runs(start) for payload in run.payloads()]

    def damaged(self) -> list[int]:
        return [sequence for run in self.runs() for sequence in run.damaged]

    def segment_paths(self) -> list[Path]:
        return sorted(self.directory.glob("*.seg"))

    def close(self) -> None:
        parts, self._open = self._open, []
        for part in parts:
            part.stop(0.0)

    def _started(self, part: P) -> P:
        part.start()
        self._open.append(part)
        return part

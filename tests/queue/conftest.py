"""Small queues, disks that misbehave, and what must hold after any of it."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

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


class TroubledDisk(UnsyncedDisk):
    """Counts changing calls and asks `trouble(call, name)` at each: it may raise or die, and what
    it answers to a write is how many bytes of it are done."""

    def __init__(self, trouble: Callable[[int, str], int | None]) -> None:
        self.calls = 0
        self.trouble = trouble

    def _meet(self, name: str) -> int | None:
        self.calls += 1
        return self.trouble(self.calls, name)

    def allocate(self, fd: int, size_bytes: int) -> None:
        self._meet("allocate")
        super().allocate(fd, size_bytes)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        keep = self._meet("pwrite")
        return super().pwrite(fd, data if keep is None else bytes(data)[:keep], offset)

    def pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> int:
        keep = self._meet("pwritev")
        if keep is None:
            return super().pwritev(fd, buffers, offset)
        return super().pwritev(fd, [b"".join(map(bytes, buffers))[:keep]], offset)

    def rename(self, old: Path, new: Path) -> None:
        self._meet("rename")
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self._meet("unlink")
        super().unlink(path)


def failing(at_call: int, code: int = errno.ENOSPC) -> Callable[[int, str], None]:
    """One call fails, then all is well again."""

    def trouble(call: int, name: str) -> None:
        if call == at_call:
            raise OSError(code, os.strerror(code))

    return trouble


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
        for part in self._open:
            part.stop(0.0)

    def _started(self, part: P) -> P:
        part.start()
        self._open.append(part)
        return part


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "queue")
    yield bench
    bench.close()


@pytest.fixture
def new_bench(tmp_path: Path) -> Iterator[Callable[[str], Bench]]:
    """For tests that need many directories."""
    made: list[Bench] = []

    def make(name: str) -> Bench:
        made.append(Bench(tmp_path / name))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def memory_bench() -> Iterator[Callable[[str], Bench]]:
    """In memory where the system has a file system for that: a kill knows no difference."""
    shared_memory = Path("/dev/shm")
    where = shared_memory if shared_memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as place:
        yield lambda name: Bench(Path(place) / name)


@pytest.fixture
def troubled_disk() -> type[TroubledDisk]:
    return TroubledDisk


@pytest.fixture
def failing_at() -> Callable[..., Callable[[int, str], None]]:
    return failing

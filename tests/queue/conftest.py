"""Small queues, disks that misbehave, and what must hold after any of it."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from .bench import Bench, UnsyncedDisk


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

    def begin_sync(self, fd: int, offset: int, size_bytes: int) -> None:
        self._meet("begin_sync")

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
def memory_place() -> Iterator[Path]:
    """In memory where the system has a file system for that: a kill knows no difference."""
    shared_memory = Path("/dev/shm")
    where = shared_memory if shared_memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as place:
        yield Path(place)


@pytest.fixture
def memory_bench(memory_place: Path) -> Callable[[str], Bench]:
    return lambda name: Bench(memory_place / name)


@pytest.fixture
def troubled_disk() -> type[TroubledDisk]:
    return TroubledDisk


@pytest.fixture
def failing_at() -> Callable[..., Callable[[int, str], None]]:
    return failing

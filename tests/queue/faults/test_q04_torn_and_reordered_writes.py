"""Q4: a disk that keeps any of the pages it was given, each at any version it ever had, or torn.

What was synced stays. Of everything later, files, names and sizes included, a crash keeps what it
likes: that is more than a power cut does, and `append` promises nothing against one but order in
what is left. So what must hold is: a start succeeds, no byte is handed out that was not appended
under its number, no number that survives is used again, and a second start changes nothing.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest

from skyfarer.queue.disk import Disk
from skyfarer.queue.layout import PAGE_BYTES

SECTOR_BYTES = 512
RANDOM_STATES = 900
EXHAUSTIVE_STATES_MAX = 4_000


@dataclass
class Inode:
    """`versions[n]` are the contents page n had since the last sync, the oldest first."""

    versions: list[list[bytes]] = field(default_factory=list)

    def see(self, data: bytes) -> None:
        pages = [data[at : at + PAGE_BYTES] for at in range(0, len(data), PAGE_BYTES)]
        self.versions += [[b""] for _ in range(len(pages) - len(self.versions))]
        for history, page in zip(self.versions, pages, strict=False):
            if history[-1] != page:
                history.append(page)

    def sync(self) -> None:
        self.versions = [history[-1:] for history in self.versions]


class LyingDisk(Disk):
    """Works, and remembers every version of every page, name and file since its last sync."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.inodes: dict[int, Inode] = {}
        self.names: dict[str, list[int]] = {}
        self.writes = 0

    def look(self) -> None:
        """After each call, and after each append: stores into a map make no call."""
        present = {path.name: path for path in self.directory.iterdir() if path.name != "lock"}
        for name, path in present.items():
            number = path.stat().st_ino
            self.inodes.setdefault(number, Inode()).see(path.read_bytes())
            history = self.names.setdefault(name, [0])
            if history[-1] != number:
                history.append(number)
        for name, history in self.names.items():
            if name not in present and history[-1]:
                history.append(0)
        self.writes += 1

    def sync(self, fd: int) -> None:
        self.look()
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            self.names = {name: history[-1:] for name, history in self.names.items()}
        else:
            self.inodes[os.fstat(fd).st_ino].sync()

    def settle(self) -> None:
        """As if everything so far had reached the disk."""
        self.look()
        self.names = {name: history[-1:] for name, history in self.names.items()}
        for inode in self.inodes.values():
            inode.sync()

    def allocate(self, fd: int, size_bytes: int) -> None:
        super().allocate(fd, size_bytes)
        self.look()

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        done = os.pwrite(fd, data, offset)
        self.look()
        return done

    def pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> int:
        done = os.pwritev(fd, buffers, offset)
        self.look()
        return done

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self.look()

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self.look()


def all_states(disk: LyingDisk) -> Iterator[dict[str, bytes]]:
    """Every combination of page versions under the names as they are now."""
    names = {name: history[-1] for name, history in disk.names.items() if history[-1]}
    histories = [history for number in names.values() for history in disk.inodes[number].versions]
    for pages in product(*histories):
        left = iter(pages)
        yield {
            name: b"".join(next(left) for _ in disk.inodes[number].versions)
            for name, number in names.items()
        }


def torn(history: list[bytes], chance: random.Random) -> bytes:
    """One version, or sectors of two."""
    some, other = chance.choice(history), chance.choice(history)
    if chance.random() < 0.8 or len(some) != len(other):
        return some
    cut = chance.randrange(0, PAGE_BYTES, SECTOR_BYTES)
    return some[:cut] + other[cut:]


def random_state(disk: LyingDisk, chance: random.Random) -> dict[str, bytes]:
    """Mostly new, mostly old or anything; a name may be an older one or not there at all."""
    bias = chance.choice((0.0, 0.5, 0.95))
    state = {}
    for name, inodes in disk.names.items():
        number = inodes[-1] if chance.random() < bias else chance.choice(inodes)
        if number:
            histories = disk.inodes[number].versions
            pages = (
                history[-1] if chance.random() < bias else torn(history, chance)
                for history in histories
            )
            state[name] = b"".join(pages)
    return state


def restore(directory: Path, state: dict[str, bytes]) -> None:
    directory.mkdir(exist_ok=True)
    for path in directory.iterdir():
        path.unlink()
    for name, data in state.items():
        (directory / name).write_bytes(data)


def check_start(bench, expected: list[bytes]) -> int:
    """Records delivered after a crash; the queue goes on behind every number that survived."""
    seen = []
    for _ in range(2):
        writer = bench.writer()
        found = {
            sequence: bytes(payload)
            for run in bench.runs()
            for sequence, payload in zip(run.sequences(), run.payloads(), strict=True)
        }
        seen.append((writer.writing, writer.oldest, found))
        bench.close()
    assert seen[0] == seen[1]
    writing, _, found = seen[0]
    assert all(payload == expected[sequence] for sequence, payload in found.items())
    assert writing <= len(expected)
    writer = bench.writer()
    bench.consumer().commit(writing)
    assert writer.append(1, [b"next"]) == writing
    assert bench.records()[-1] == b"next"
    bench.close()
    return len(found)


def live(bench, disk: LyingDisk, batches: list[list[int]], settled: bool) -> list[bytes]:
    """What was appended. `settled`: the empty queue had reached the disk before."""
    writer, consumer = bench.writer(disk), bench.consumer()
    if settled:
        disk.settle()
    expected: list[bytes] = []
    for number, batch in enumerate(batches):
        payloads = [b"%d.%d/" % (number, n) * size for n, size in enumerate(batch)]
        writer.append(1, payloads)
        expected += payloads
        disk.look()
        if number % 2:
            consumer.commit(writer.writing)
            disk.look()
    bench.close()
    return expected


def test_q04_any_subset_of_the_pages_of_two_records_starts_and_delivers_no_invalid_record(
    memory_bench,
):
    bench = memory_bench("queue")
    disk = LyingDisk(bench.directory)
    bench.directory.mkdir()
    expected = live(bench, disk, [[100], [50]], settled=True)
    delivered = []
    for state in all_states(disk):
        restore(bench.directory, state)
        delivered.append(check_start(bench, expected))
    assert 100 < len(delivered) < EXHAUSTIVE_STATES_MAX
    assert set(delivered) == {0, 1, 2}


@pytest.mark.parametrize("seed", range(3))
def test_q04_random_subsets_of_a_longer_history_start_and_deliver_no_invalid_record(
    memory_bench, seed
):
    chance = random.Random(seed)
    bench = memory_bench("queue")
    bench.directory.mkdir()
    disk = LyingDisk(bench.directory)
    batches = [[chance.randint(0, 400) for _ in range(chance.randint(1, 6))] for _ in range(24)]
    expected = live(bench, disk, batches, settled=False)
    assert disk.writes > 50
    delivered = []
    for _ in range(RANDOM_STATES // 3):
        restore(bench.directory, random_state(disk, chance))
        delivered.append(check_start(bench, expected))
    assert len(set(delivered)) > 10

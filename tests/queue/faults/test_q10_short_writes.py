"""Q10: a disk that takes only part of what it is given, as a nearly full or interrupted one may."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

from skyfarer.queue.consumer import Consumer

from ..bench import UnsyncedDisk

APPENDS = 60


class StingyDisk(UnsyncedDisk):
    """Does at most so many bytes of a write, and counts how often that was less than all."""

    def __init__(self, bytes_max: int) -> None:
        self.short = 0
        self._chance = random.Random(bytes_max)
        self._bytes_max = bytes_max

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        return self.pwritev(fd, [data], offset)

    def pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> int:
        whole = b"".join(buffers)
        some = whole[: self._chance.randint(1, self._bytes_max)]
        self.short += len(some) < len(whole)
        return os.pwrite(fd, some, offset)


@pytest.mark.parametrize("bytes_max", [1, 37, 700])
@pytest.mark.parametrize(
    ("policy", "durability"), [("reject", "append"), ("drop_oldest", "append"), ("reject", "fsync")]
)
def test_q10_no_record_and_no_commit_is_torn_by_short_writes(bench, policy, durability, bytes_max):
    disk = StingyDisk(bytes_max)
    writer = bench.writer(disk, when_full=policy, durability=durability)
    consumer = Consumer(bench.directory, "main", disk)
    consumer.start()
    expected: list[bytes] = []
    for n in range(APPENDS):
        batch = [b"%d" % (n + at) * size for at, size in enumerate((700, 0, 13))]
        assert writer.append(1, batch) == len(expected)
        expected += batch
        held = bench.records(writer.oldest)
        assert held == expected[writer.oldest :]
        if policy == "reject":
            consumer.commit(writer.writing, {"rejected": 1})
    committed, dropped = consumer.committed(), consumer.dropped()
    consumer.stop()
    bench.close()
    writer = bench.writer(when_full=policy)
    assert (writer.writing, bench.records(writer.oldest)) == (len(expected), held)
    again = bench.consumer()
    assert (again.committed(), again.dropped()) == (committed, dropped)
    assert writer.oldest > 0
    assert disk.short >= APPENDS

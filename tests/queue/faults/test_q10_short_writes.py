"""Q10: a disk that takes only part of what it is given, as a nearly full or interrupted one may."""

from __future__ import annotations

import random

import pytest

from skyfarer.queue.consumer import Consumer

APPENDS = 60


class Stingy:
    """Answers a write with how many of its bytes are done, and counts how often it gave less."""

    def __init__(self, bytes_max: int) -> None:
        self.short = 0
        self._chance = random.Random(bytes_max)
        self._bytes_max = bytes_max

    def __call__(self, call: int, name: str) -> int | None:
        if not name.startswith("pwrite"):
            return None
        self.short += 1
        return self._chance.randint(1, self._bytes_max)


@pytest.mark.parametrize("bytes_max", [1, 37, 3000])
@pytest.mark.parametrize(
    ("policy", "durability"), [("reject", "append"), ("drop_oldest", "append"), ("reject", "fsync")]
)
def test_q10_no_record_and_no_commit_is_torn_by_short_writes(
    bench, troubled_disk, policy, durability, bytes_max
):
    stingy = Stingy(bytes_max)
    disk = troubled_disk(stingy)
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
    assert stingy.short >= APPENDS

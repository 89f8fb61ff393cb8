"""Q2: SIGKILL on entering every system call by which a queue opens, maps or changes its files.

Counting on until a life is over before its n-th call leaves none out.
"""

from __future__ import annotations

import shutil
import signal
from functools import partial
from itertools import accumulate, count

import pytest

from skyfarer.queue.disk import Disk

from ..traced_child import LIVED, run_traced

SIZES = [[900, 0, 1500], [3000, 3000, 3000], [4000, 4000], [4000, 4000], [4000, 100]]
ENDS = list(accumulate(map(len, SIZES)))
EVERYTHING = [
    bytes([65 + n]) * size for n, size in enumerate(size for batch in SIZES for size in batch)
]

# Names of which a life makes at least one call, and names it may do without: which of two calls
# serves a function of Python is the C library's choice.
MADE = ["openat", "close", "flock", "fallocate", "pwrite64", "fsync", "mmap", "munmap"]
EITHER = [("pwritev", "pwritev2"), ("rename", "renameat", "renameat2"), ("mkdir", "mkdirat")]
POSSIBLE = ["ftruncate", "fdatasync", "msync", "sync_file_range", "madvise", "copy_file_range"]
WRITES_AND_SYNCS = ["pwrite64", "pwritev", "pwritev2", "fsync", "fdatasync"]
POINTS_MIN = 100
WAYS = {
    "reject": {"when_full": "reject"},
    "drop_oldest": {"when_full": "drop_oldest"},
    "fsync": {"durability": "fsync"},
}


def life(bench, way: str, tell) -> None:
    """Syncs for real: fsync is one of the calls."""
    writer, consumer = bench.writer(Disk(), **WAYS[way]), bench.consumer()
    for number, end in enumerate(ENDS):
        if number == 2:
            writer.stop(0.0)
            writer.start()
        writer.append(1, EVERYTHING[end - len(SIZES[number]) : end])
        tell("accepted", end)
        if way != "drop_oldest":
            consumer.commit(end - 2)
            tell("committed", end - 2)


def killed_in(bench, way: str, call: str, when: int) -> tuple[bool, dict[str, int]]:
    """Whether strace killed the life, and what the life had told by then."""
    injection = f"inject={call}:signal=SIGKILL:when={when}"
    options = "-e", f"trace={call}", "-e", injection
    status, told = run_traced(partial(life, bench, way), *options)
    assert status in (signal.SIGKILL, LIVED), (call, when, status)
    return status == signal.SIGKILL, dict(told)


def check_survival(bench, way: str, facts: dict[str, int]) -> None:
    accepted = facts.get("accepted", 0)
    seen = []
    for _ in range(2):
        writer = bench.writer(**WAYS[way])
        seen.append((writer.writing, writer.oldest, bench.records(writer.oldest)))
        bench.close()
    assert seen[0] == seen[1]
    writing, oldest, records = seen[0]
    assert accepted <= writing <= next((end for end in ENDS if end > accepted), accepted)
    assert records == EVERYTHING[oldest:writing]
    writer, consumer = bench.writer(**WAYS[way]), bench.consumer()
    assert facts.get("committed", 0) <= consumer.committed() <= writing
    assert writer.append(1, [b"life goes on"]) == writing
    bench.close()


def kills_at(memory_bench, way: str, call: str) -> int:
    for when in count(1):
        bench = memory_bench("queue")
        killed, facts = killed_in(bench, way, call, when)
        check_survival(bench, way, facts)
        shutil.rmtree(bench.directory)
        if not killed:
            assert facts["accepted"] == len(EVERYTHING)
            return when - 1
    raise AssertionError


@pytest.mark.parametrize("way", ["reject", "drop_oldest"])
def test_q02_a_kill_at_every_system_call_of_a_life_loses_nothing(
    memory_bench, way, record_property
):
    unlinks = [("unlink", "unlinkat")] if way == "drop_oldest" else []
    names = [*MADE, *POSSIBLE, *(name for names in [*EITHER, *unlinks] for name in names)]
    hits = {name: kills_at(memory_bench, way, name) for name in names}
    record_property("kill_points", hits)
    assert all(hits[name] for name in MADE), hits
    assert all(any(hits[name] for name in names) for names in [*EITHER, *unlinks]), hits
    assert sum(hits.values()) >= POINTS_MIN


def test_q02_a_kill_at_every_write_and_sync_of_a_life_that_syncs_loses_nothing(
    memory_bench, record_property
):
    """Entries go by a call there, and nowhere else."""
    hits = {name: kills_at(memory_bench, "fsync", name) for name in WRITES_AND_SYNCS}
    record_property("kill_points", hits)
    assert all(hits[name] for name in ("pwrite64", "fsync", "fdatasync")), hits

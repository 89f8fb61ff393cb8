"""Q1: SIGKILL before every bytecode instruction of append, rotate, reuse, commit and recovery.

What must hold afterwards: every append that was acknowledged is there, byte for byte, once and in
order; what is there beyond it is the beginning of the one append in flight; the acknowledged commit
holds; a second recovery changes nothing; and the queue goes on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from functools import partial
from itertools import accumulate
from pathlib import Path

import pytest

import skyfarer.queue
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, decode_segment_header
from skyfarer.queue.meta import read_meta
from skyfarer.testing.kill_points import (
    BEGINS,
    PROCESSES,
    Death,
    killed_at,
    on_both_cores,
    run_apart,
    steps_of,
)

ROOM = str(Path(skyfarer.queue.__file__).parent)
BATCHES = [[1000, 0, 1500], [3000, 3000, 3000], [40] * 3, [4000, 4000], [4000, 4000, 4000]]
ENDS = list(accumulate(map(len, BATCHES)))
PHASES = {
    "reject": {"create", "checkpoint", "append", "commit", "recovery"},
    "drop_oldest": {"append"},
}
LIFE_POINTS_MIN = {"reject": 12_000, "drop_oldest": 2_500}
RECOVERY_POINTS_MIN = 5_500
DEPTH = 2  # a recovery, and the recovery of that


def payloads(number: int) -> list[bytes]:
    return [(b"%d.%d/" % (number, n) * 1000)[:size] for n, size in enumerate(BATCHES[number])]


EVERYTHING = [payload for number in range(len(BATCHES)) for payload in payloads(number)]


def life(bench, policy: str, tell) -> None:
    """Creation, appends, splits, commits, a restart, and reuse of the ring."""
    tell("create", BEGINS)
    writer = bench.writer(when_full=policy)
    tell("checkpoint", BEGINS)
    consumer = bench.consumer()
    for number in range(len(BATCHES)):
        if number == 1:
            writer.stop(0.0)
            tell("recovery", BEGINS)
            writer = bench.writer(when_full=policy)
        tell(f"append {number}", BEGINS)
        writer.append(1, payloads(number))
        tell("accepted", writer.writing)
        if policy == "reject" or number == 0:
            tell(f"commit {number}", BEGINS)
            consumer.commit(writer.writing - 2)
            tell("committed", writer.writing - 2)
    tell("oldest", writer.oldest)
    tell("dropped", writer.dropped)


def files(directory: Path) -> dict[str, bytes]:
    """What recovery may change. `state` counts starts, and `lock` names a process."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name not in ("state", "lock")
    }


def check_survival(bench, policy: str, death: Death) -> None:
    accepted, committed = death.facts.get("accepted", 0), death.facts.get("committed", 0)
    writer, reader = bench.writer(when_full=policy), bench.reader()
    writing, oldest = writer.writing, writer.oldest
    assert accepted <= writing <= next((end for end in ENDS if end > accepted), accepted)
    runs = list(reader.runs(oldest, writing))
    assert [bytes(p) for run in runs for p in run.payloads()] == EVERYTHING[oldest:writing]
    assert not any(run.damaged for run in runs)
    del runs
    first = files(bench.directory)
    bench.close()
    writer, consumer = bench.writer(when_full=policy), bench.consumer()
    assert (writer.writing, writer.oldest, files(bench.directory)) == (writing, oldest, first)
    assert committed <= consumer.committed() <= writing
    assert policy == "drop_oldest" or oldest <= consumer.committed()
    consumer.commit(writing, {"overflow": max(0, oldest - consumer.committed())})
    assert writer.append(2, [b"life goes on"]) == writing
    assert bench.records(writing) == [b"life goes on"]
    bench.close()


def remains(directory: Path, death: Death) -> bytes:
    """All that a death leaves behind. Most steps change no file, and what survived once survives
    again: deaths that leave the same are looked at once."""
    left = hashlib.blake2b(repr(sorted(death.facts.items())).encode())
    for path in sorted(directory.iterdir()) if directory.exists() else ():
        if path.name != "lock":  # it names a process
            left.update(path.name.encode() + path.read_bytes())
    return left.digest()


def kill_everywhere(memory_bench, policy: str, points: list[tuple[str, int]]) -> Counter[str]:
    """Kill points hit, by phase; each process works in its own directory."""

    def work(share: int) -> dict[str, int]:
        hits: Counter[str] = Counter()
        seen: set[bytes] = set()
        for point in points[share::PROCESSES]:
            bench = memory_bench(f"queue-{share}")
            death = killed_at(ROOM, point, partial(life, bench, policy))
            assert death.killed, point
            if (left := remains(bench.directory, death)) not in seen:
                check_survival(bench, policy, death)
            seen.add(left)
            shutil.rmtree(bench.directory, ignore_errors=True)
            hits[point[0]] += 1
        return hits

    return sum(map(Counter, on_both_cores(work)), Counter())


@pytest.mark.parametrize("policy", ["reject", "drop_oldest"])
def test_q01_a_kill_at_every_step_of_a_life_loses_nothing(
    memory_bench, policy, record_property, monkeypatch
):
    """The policy is asked when the ring is full, in the last append: the rest is alike.

    Every life has the same queue id, so that the same death leaves the same files."""
    monkeypatch.setattr(os, "urandom", bytes)
    bench = memory_bench("whole")
    steps = steps_of(ROOM, partial(life, bench, policy))
    bench.close()
    last = f"append {len(BATCHES) - 1}"
    points = [point for point in steps.points() if policy == "reject" or point[0] == last]
    shutil.rmtree(bench.directory)
    whole = run_apart(partial(life, bench, policy)).facts
    assert whole["oldest"] == len(BATCHES[0]) + 1
    assert whole["dropped"] == (whole["oldest"] - whole["committed"] if policy != "reject" else 0)
    hits = kill_everywhere(memory_bench, policy, points)
    record_property("kill_points", dict(hits))
    assert sum(hits.values()) == len(points) >= LIFE_POINTS_MIN[policy]
    assert {name.split()[0] for name in hits} == PHASES[policy]


@pytest.fixture
def wreck(memory_bench):
    """A torn tail, a damaged file and a leftover, so that recovery has everything to do."""
    bench = memory_bench("wreck")
    life(bench, "reject", lambda name, value: None)
    bench.close()
    meta = read_meta(bench.directory)
    pages = {path: path.read_bytes()[:PAGE_BYTES] for path in bench.segment_paths()}
    headers = {path: decode_segment_header(page, meta.queue_id) for path, page in pages.items()}
    _, second, *_, last = sorted(headers, key=lambda path: headers[path].number)
    with last.open("r+b") as file:
        file.seek(PAGE_BYTES + 20 * SLOT_BYTES)
        file.write(b"torn" * 30)
    second.write_bytes(b"garbage")
    (bench.directory / "00009.seg.new").write_bytes(b"leftover")
    return bench


def recover(bench, tell) -> None:
    tell("recovery", BEGINS)
    bench.writer()


def outcome(bench) -> tuple[int, int, list[bytes], dict[str, bytes]]:
    writer = bench.writer()
    found = (writer.writing, writer.oldest, bench.records(writer.oldest), files(bench.directory))
    bench.close()
    return found


def test_q01_a_kill_at_every_step_of_recovery_and_of_its_recovery_changes_nothing(
    memory_bench, wreck, record_property
):
    def copy(name: str):
        bench = memory_bench(name)
        shutil.copytree(wreck.directory, bench.directory, copy_function=shutil.copyfile)
        return bench

    bench = copy("whole")
    points = steps_of(ROOM, partial(recover, bench)).points()
    bench.close()
    undisturbed = outcome(bench)
    assert undisturbed[0] == len(EVERYTHING)

    def work(share: int) -> list[int]:
        hits = [0] * DEPTH
        for at in range(len(points))[share::PROCESSES]:
            bench = copy(f"queue-{share}")
            for depth in range(DEPTH):
                point = points[(at * (1 + 7919 * depth)) % len(points)]
                hits[depth] += killed_at(ROOM, point, partial(recover, bench)).killed
            assert outcome(bench) == outcome(bench) == undisturbed, at
            shutil.rmtree(bench.directory)
        return hits

    hits = [sum(shares) for shares in zip(*on_both_cores(work), strict=True)]
    record_property("kill_points", hits)
    assert hits[0] == len(points)
    assert sum(hits) >= RECOVERY_POINTS_MIN

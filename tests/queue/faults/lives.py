"""Lives of a queue, killed at every step, and what must have survived."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from skyfarer.testing.kill_points import BEGINS, Tell, on_both_cores, run_apart, steps_of

from ..bench import Bench
from .deaths import ROOM, Facts, Line, files, killed_apart, remains, share_of

BATCHES = [
    [1000, 0, 1500],
    [3000, 3000, 3000],
    [40] * 3,
    [50],
    [4000, 4000],
    [4000, 4000, 4000],
]
ENDS = list(accumulate(map(len, BATCHES)))
WAYS: dict[str, dict[str, str]] = {
    "reject": {"when_full": "reject"},
    "drop_oldest": {"when_full": "drop_oldest"},
    "fsync": {"durability": "fsync"},
}
# Where a life differs from one that rejects: the policy is asked when the ring is full, in the last
# append; entries that are synced are written otherwise, in a group and in a batch across segments.
PHASES = {"drop_oldest": ["append 5"], "fsync": ["append 2", "append 5"]}


def payloads(number: int) -> list[bytes]:
    return [(b"%d.%d/" % (number, n) * 1000)[:size] for n, size in enumerate(BATCHES[number])]


EVERYTHING = [payload for number in range(len(BATCHES)) for payload in payloads(number)]


def life(way: str, bench: Bench, tell: Tell) -> None:
    """Creation, appends, splits, commits, a restart, and reuse of the ring."""
    tell("create", BEGINS)
    writer = bench.writer(**WAYS[way])
    tell("checkpoint", BEGINS)
    consumer = bench.consumer()
    for number in range(len(BATCHES)):
        if number == 1:
            writer.stop(0.0)
            tell("recovery", BEGINS)
            writer = bench.writer(**WAYS[way])
        tell(f"append {number}", BEGINS)
        writer.append(1, payloads(number))
        tell("accepted", writer.writing)
        if way != "drop_oldest" or number == 0:
            tell(f"commit {number}", BEGINS)
            consumer.commit(writer.writing - 2)
            tell("committed", writer.writing - 2)
    tell("oldest", writer.oldest)
    tell("dropped", writer.dropped)


def check_survival(way: str, bench: Bench, facts: Facts) -> None:
    accepted, committed = facts.get("accepted", 0), facts.get("committed", 0)
    writer, reader = bench.writer(**WAYS[way]), bench.reader()
    writing, oldest = writer.writing, writer.oldest
    assert accepted <= writing <= next((end for end in ENDS if end > accepted), accepted)
    runs = list(reader.runs(oldest, writing))
    assert [bytes(p) for run in runs for p in run.payloads()] == EVERYTHING[oldest:writing]
    assert not any(run.damaged for run in runs)
    del runs
    first = files(bench.directory)
    bench.close()
    writer, consumer = bench.writer(**WAYS[way]), bench.consumer()
    assert (writer.writing, writer.oldest, files(bench.directory)) == (writing, oldest, first)
    assert committed <= consumer.committed() <= writing
    assert way == "drop_oldest" or oldest <= consumer.committed()
    consumer.commit(writing, {"overflow": max(0, oldest - consumer.committed())})
    assert writer.append(2, [b"life goes on"]) == writing
    assert bench.records(writing) == [b"life goes on"]
    bench.close()


def kill_lives(place: str, way: str) -> dict[str, Any]:
    os.urandom = bytes  # the same queue id for all, so that the same death leaves the same files
    bench, scenario = Bench(Path(place) / "whole"), partial(life, way)
    points = steps_of(ROOM, partial(scenario, bench)).points()
    points = [point for point in points if point[0] in PHASES.get(way, [point[0]])]
    bench.close()
    shutil.rmtree(bench.directory)
    told = run_apart(partial(scenario, bench)).facts
    whole = {name: value for name, value in told.items() if value != BEGINS}
    check = partial(check_survival, way)

    def work(share: int) -> dict[str, Any]:
        mine, line = share_of(points, share), Line(Path(place) / f"line-{share}", check)
        assert line.killed(mine, scenario) == remains(bench.directory, whole)
        assert len(line.left) == len(mine)
        new = partial(Bench, Path(place) / f"apart-{share}")
        apart = killed_apart(new, mine, line.left, scenario, check)
        return {"hits": Counter(phase for phase, _ in mine), "apart": apart}

    return {"points": len(points), "whole": whole, "shares": on_both_cores(work)}

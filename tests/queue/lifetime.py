"""A life of a queue, killed between its lines, and what must have survived."""

from __future__ import annotations

import os
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from skyfarer.queue.disk import Disk
from skyfarer.testing.kill_points import BEGINS, Tell

from .bench import Bench
from .faults.deaths import ROOM, Facts, Line

BATCHES = [[1000, 0, 1500], [3000, 3000, 3000], [40] * 5, [4000, 4000], [2500], [4000, 4000, 100]]


def payloads(number: int) -> list[bytes]:
    return [(b"%d.%d/" % (number, n) * 1000)[:size] for n, size in enumerate(BATCHES[number])]


EVERYTHING = [payload for number in range(len(BATCHES)) for payload in payloads(number)]


def life(bench: Bench, disk: Disk | None, policy: str, tell: Tell) -> None:
    """Creation, appends, splits, commits, a restart, and reuse of the ring."""
    writer = bench.writer(disk, when_full=policy)
    consumer = bench.consumer()
    for number in range(len(BATCHES)):
        if number == 3:
            writer.stop(0.0)
            writer = bench.writer(disk, when_full=policy)
        writer.append(1, payloads(number))
        tell("accepted", writer.writing)
        if policy == "reject" or number == 2:
            consumer.commit(writer.writing - 2)
            tell("committed", writer.writing - 2)


def check_survival(bench: Bench, policy: str, accepted: int, committed: int) -> None:
    seen = []
    for _ in range(2):
        writer = bench.writer(when_full=policy)
        seen.append((writer.writing, writer.oldest, writer.dropped, bench.damaged()))
        assert bench.records(writer.oldest) == EVERYTHING[writer.oldest : writer.writing]
        bench.close()
    assert seen[0] == seen[1]
    writing, oldest, _, damaged = seen[0]
    ends = accumulate(map(len, BATCHES))
    assert accepted <= writing <= next((end for end in ends if end > accepted), accepted)
    assert damaged == list(range(oldest))
    writer, consumer = bench.writer(when_full=policy), bench.consumer()
    assert committed <= consumer.committed() <= writing
    if policy == "reject":
        assert oldest <= consumer.committed()
    consumer.commit(writing, {"overflow": max(0, oldest - consumer.committed())})
    assert writer.append(2, [b"life goes on"]) == writing
    assert bench.records(writing) == [b"life goes on"]
    bench.close()


def between_lines(bench: Bench, policy: str) -> list[int]:
    """The instructions at which a life first takes a step from one line of the room to the next."""
    steps, begun = 0, []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if not frame.f_code.co_filename.startswith(ROOM):
            return None
        frame.f_trace_opcodes = True
        if event == "line":  # comes before that of its first instruction
            begun.append((f"{frame.f_code.co_filename}:{frame.f_lineno}", steps + 1))
        steps += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        life(bench, None, policy, lambda *_: None)
    finally:
        sys.settrace(None)
    bench.close()
    first_taken: dict[tuple[str, str], int] = {}
    for (line, _), (following, step) in pairwise(begun):
        first_taken.setdefault((line, following), step)
    return list(first_taken.values())


def kill_between_lines(place: str, policy: str) -> int:
    """How many deaths there were."""
    os.urandom = bytes  # the same queue id for all, so that the same death leaves the same files

    def mortal(bench: Bench, tell: Tell) -> None:
        tell("life", BEGINS)
        life(bench, None, policy, tell)

    def check(bench: Bench, facts: Facts) -> None:
        check_survival(bench, policy, facts.get("accepted", 0), facts.get("committed", 0))

    line = Line(Path(place) / "line", check)
    points = [("life", step) for step in between_lines(Bench(Path(place) / "whole"), policy)]
    line.killed(points, mortal)
    return len(line.left)

"""Deaths in a queue directory: in succession, some of them again apart, and what they leave.

This and what uses it is for a small process: it is forked thousands of times, and pytest is heavy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import skyfarer.queue
from skyfarer.queue import writer
from skyfarer.testing.kill_points import PROCESSES, Death, Scenario, Tell, killed_at
from skyfarer.testing.succession import Point, killed_in_succession

from ..bench import Bench

ROOM = str(Path(skyfarer.queue.__file__).parent)
APART_EVERY = 61
Facts = dict[str, int]
Mortal = Callable[[Bench, Tell], None]
Check = Callable[[Bench, Facts], None]


def files(directory: Path) -> dict[str, bytes]:
    """What recovery may change. `state` counts starts, and `lock` names a process."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name not in ("state", "lock")
    }


def remains(directory: Path, facts: Facts) -> bytes:
    """All that a death leaves behind. Most steps change no file, and what survived once survives
    again: deaths that leave the same are looked at once."""
    left = hashlib.sha256(repr(sorted(facts.items())).encode())
    for path in sorted(directory.iterdir()) if directory.exists() else ():
        if path.name != "lock":  # it names a process
            with path.open("rb", buffering=0) as file:
                left.update(path.name.encode() + file.read())
    return left.digest()


def copied(source: Path, target: Path) -> Bench:
    """Nobody holds a lock on the copy."""
    shutil.rmtree(target, ignore_errors=True)
    if source.exists():
        shutil.copytree(source, target, copy_function=shutil.copyfile)
    return Bench(target)


def as_one_process(scenario: Scenario, tell: Tell) -> None:
    """For a succession: a writer refuses to append in a process with another id."""
    founder = os.getpid()
    writer.getpid = lambda: founder
    scenario(tell)


class Line:
    """A succession in one directory. What each death left is checked in a copy, and only once."""

    def __init__(self, directory: Path, check: Check) -> None:
        self.bench = Bench(directory)
        self.left: list[bytes] = []
        self._check = check
        self._checked: set[bytes] = set()

    def killed(self, points: Sequence[Point], scenario: Mortal) -> bytes:
        """What the last heir leaves, who is not killed."""
        one_process = partial(as_one_process, partial(scenario, self.bench))
        end = killed_in_succession(ROOM, points, one_process, self._look)
        return remains(self.bench.directory, end.facts)

    def _look(self, death: Death) -> None:
        self.left.append(left := remains(self.bench.directory, death.facts))
        if left not in self._checked:
            copy = copied(self.bench.directory, self.bench.directory.with_suffix(".copy"))
            self._check(copy, death.facts)
            self._checked.add(left)


def killed_apart(
    new: Callable[[], Bench], points: list[Point], left: list[bytes], scenario: Mortal, check: Check
) -> int:
    """Some of the points again, each with a life of its own: death leaves the same as in the line,
    and releases the locks, for here the directory itself is opened again. Returns how many."""
    numbers = range(0, len(points), APART_EVERY)
    for number in numbers:
        bench, point = new(), points[number]
        death = killed_at(ROOM, point, partial(scenario, bench))
        assert death.killed, point
        assert remains(bench.directory, death.facts) == left[number], point
        check(bench, death.facts)
        shutil.rmtree(bench.directory, ignore_errors=True)
    return len(numbers)


def share_of(points: list[Point], share: int) -> list[Point]:
    """Points that follow on one another: the rest of the life is lived through unharmed."""
    return points[len(points) * share // PROCESSES : len(points) * (share + 1) // PROCESSES]

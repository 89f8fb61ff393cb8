"""SIGKILL before every step of a life that is lived once: a process dies there, its heir lives on.

`kill_points.killed_at` lives a life anew for each death, so that n steps cost n lives. Here the
process forks before each step. The one that did the work so far is killed by SIGKILL at that
instruction; once it is dead, what it left is looked at; then the heir takes the step and is the
next to die.

What is proven: the bytes that a process killed at this instruction leaves in its files, all of them
and nothing more. An heir starts with its parent's memory, and shares its maps and its open files
with their positions and locks, so it does what the parent would have done. It is made by the C
library's own fork: Python's would run hooks by which a package notices that it was forked.

What is not proven: what the kernel does when the last holder of a file is gone, such as releasing a
lock, for the heir holds on to all of it. So what was left is to be opened in a copy, and some
points are to be killed by `killed_at` as well. A process id is the one thing that an heir does not
inherit: the scenario has to hide that from a package that asks.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from types import FrameType
from typing import Any, Final

from skyfarer.testing.kill_points import (
    BEGINS,
    Death,
    Scenario,
    end_after,
    facts_in,
    trace_steps,
    write_fact,
)

Point = tuple[str, int]
_SET_CHILD_SUBREAPER: Final = 36
_TOLD_BYTES_MAX: Final = 65536
_libc: Final = ctypes.PyDLL(None)  # keeps the interpreter's lock, which the heir must hold too


def killed_in_succession(
    package: str, points: Sequence[Point], scenario: Scenario, look: Callable[[Death], None]
) -> Death:
    """One death before each of the points, which are in the order of the life; `look` is called
    after each, and nothing happens meanwhile. The last heir lives to the end, which is returned.

    For a process without other children, and a scenario without threads.
    """
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    (told, tell), (leave, give_leave) = os.pipe(), os.pipe()
    os.set_blocking(told, False)
    if os.fork() == 0:
        os.close(give_leave)
        end_after(lambda: _live(package, frozenset(points), scenario, tell, leave))
    os.close(leave)
    facts: dict[str, int] = {}
    try:
        for point in points:
            _await_end(signal.SIGKILL, point)
            facts |= _read(told)
            _look(look, Death(True, dict(facts)), point)
            os.write(give_leave, b"!")
        _await_end(0, "the last point")
        return Death(False, facts | _read(told))
    finally:
        for fd in (told, tell, give_leave):
            os.close(fd)


def _live(
    package: str, points: Collection[Point], scenario: Scenario, pipe: int, leave: int
) -> None:
    steps: Counter[str] = Counter()
    phase = ""

    def tell(name: str, value: int) -> None:
        nonlocal phase
        if value == BEGINS:
            phase = name
        else:
            write_fact(pipe, [name, value])

    def step(_: FrameType, event: str, __: Any) -> Any:
        if event == "opcode":
            steps[phase] += 1
            if (phase, steps[phase]) in points:
                _die_and_leave_an_heir(leave)
        return step

    trace_steps(package, step)
    scenario(tell)


def _die_and_leave_an_heir(leave: int) -> None:
    """Returns in the heir, when it has leave; without it, whoever looks has failed."""
    assert threading.active_count() == 1, "threads do not survive a fork"
    if _libc.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    if not os.read(leave, 1):
        os._exit(1)


def _await_end(expected: int, where: object) -> None:
    _, status = os.waitpid(-1, 0)
    assert status == expected, f"wait status {status}, not {expected}, at {where}"


def _look(look: Callable[[Death], None], death: Death, point: Point) -> None:
    try:
        look(death)
    except BaseException as error:
        error.add_note(f"after a kill before {point}, having told {death.facts}")
        raise


def _read(told: int) -> dict[str, int]:
    try:
        return facts_in(os.read(told, _TOLD_BYTES_MAX))
    except BlockingIOError:
        return {}

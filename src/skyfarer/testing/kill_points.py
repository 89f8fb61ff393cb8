"""SIGKILL at any bytecode step of a package, thousands of times over, on two processes.

A step is one bytecode instruction executed in a file of the package; the interpreter's own frames
between them do not count. Killed before step k, a process has done exactly what its first k - 1
steps did: no handler runs, no buffer is flushed, no lock is released but by the kernel.

Everything is made by `fork` from a warm parent: a program started anew would spend a hundred times
longer on its imports than on the scenario.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, Final

PROCESSES: Final = 2
BEGINS: Final = -1
Tell = Callable[[str, int], None]
Scenario = Callable[[Tell], None]


@dataclass
class Steps:
    """What a scenario does when nobody kills it: steps per phase, in order, and the instructions
    of the package that were executed at all."""

    per_phase: Counter[str] = field(default_factory=Counter)
    places: set[tuple[str, int]] = field(default_factory=set)

    def points(self) -> list[tuple[str, int]]:
        """Every point at which the scenario can be killed."""
        return [(phase, step + 1) for phase, n in self.per_phase.items() for step in range(n)]


@dataclass(frozen=True)
class Death:
    """`facts` holds the last value told for each name; what was told is known to the outside."""

    killed: bool
    facts: dict[str, int]


def steps_of(package: str, scenario: Scenario) -> Steps:
    """`tell(name, BEGINS)` begins a phase; steps before the first are not of interest."""
    steps, phase = Steps(), ""

    def tell(name: str, value: int) -> None:
        nonlocal phase
        phase = name if value == BEGINS else phase

    def step(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode" and phase:
            steps.per_phase[phase] += 1
            steps.places.add((frame.f_code.co_filename + frame.f_code.co_qualname, frame.f_lasti))
        return step

    trace_steps(package, step)
    try:
        scenario(tell)
    finally:
        sys.settrace(None)
    return steps


def killed_at(package: str, point: tuple[str, int], scenario: Scenario) -> Death:
    """Runs the scenario in a child that dies before that step of that phase. What comes before the
    phase runs untraced, which is most of the speed."""
    kill_phase, left = point

    def armed(tell: Tell) -> None:
        def listen(name: str, value: int) -> None:
            if value != BEGINS:
                tell(name, value)
            elif name == kill_phase:
                trace_steps(package, count)

        scenario(listen)

    def count(_: FrameType, event: str, __: Any) -> Any:
        nonlocal left
        if event == "opcode":
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
        return count

    return run_apart(armed)


def run_apart(scenario: Scenario) -> Death:
    """Runs the scenario in a child; an end that is neither its own nor a SIGKILL is an error."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        end_after(lambda: scenario(lambda name, value: write_fact(there, [name, value])))
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        facts = facts_in(pipe.read())
    _, status = os.waitpid(child, 0)
    if status not in (0, signal.SIGKILL):
        raise AssertionError(f"the scenario ended with wait status {status} after {facts}")
    return Death(status != 0, facts)


def on_both_cores(work: Callable[[int], Any]) -> list[Any]:
    """`work(0)` and `work(1)` at once; each answers with something JSON can hold.

    Collecting garbage would write to every object, so to every page shared with a forked child: it
    is left out, at a third of the cost of a fork.
    """
    pipes = []
    for share in range(PROCESSES):
        here, there = os.pipe()
        if os.fork() == 0:
            gc.freeze()
            gc.disable()
            end_after(partial(_report, there, work, share))
        os.close(there)
        pipes.append(here)
    answers = []
    for here in pipes:
        with os.fdopen(here) as pipe:
            answers += [json.loads(line) for line in pipe]
    ends = [os.wait()[1] for _ in pipes]
    if any(ends):
        raise AssertionError(f"a share of the work failed; wait statuses {ends}, see above")
    return answers


def end_after(act: Callable[[], None]) -> None:
    """Ends the process. Without the parent's exit handlers: they belong to the parent."""
    end = 1
    try:
        act()
        end = 0
    except BaseException:  # noqa: BLE001 - a child must not run on into its parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(end)


def _report(pipe: int, work: Callable[[int], Any], share: int) -> None:
    write_fact(pipe, work(share))


def write_fact(pipe: int, fact: object) -> None:
    os.write(pipe, json.dumps(fact).encode() + b"\n")


def facts_in(told: bytes) -> dict[str, int]:
    """The last value told for each name."""
    return dict(json.loads(line) for line in told.splitlines())


def trace_steps(package: str, step: Callable[[FrameType, str, Any], Any]) -> None:
    def enter(frame: FrameType, _: str, __: Any) -> Any:
        if not frame.f_code.co_filename.startswith(package):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return step

    sys.settrace(enter)

"""Random histories on a faulty disk against a model that is a list.

A history that once failed, on the code as it was or with one of its rules taken out, stays in
`seeds/` and is replayed before anything is searched for: hypothesis has no `@example` for machines.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from .histories import ALIVE, CONSUMERS
from .machine import QueueMachine

SEEDS = sorted((Path(__file__).parent / "seeds").glob("*.json"))
LAST_STEPS: list[tuple[str, dict[str, Any]]] = [
    ("fill_or_free_disk", {"refused": []}),
    ("start_writer", {"fate": ALIVE}),
    *[("start_consumer", {"fate": ALIVE, "name": name}) for name in CONSUMERS],
    ("read", {"skip": 0, "fresh": True}),
    ("read", {"skip": 0, "fresh": False}),
]
EXAMPLES = 100
ALWAYS_MET = {"death in append", "death in recovery", "no space", "input/output error"}
FAULTS = ALWAYS_MET | {
    "death in commit", "death in sync", "full", "waited", "overflow", "sync failed",
    "damage found", "damage noticed", "torn tail cut", "unacknowledged records kept",
    "state rotten", "meta rotten", "place rotten", "consumer fell back",
}  # fmt: skip


def machine_type(
    when_full: str, durability: str, names: tuple[str, ...] = CONSUMERS
) -> type[QueueMachine]:
    rows = {"when_full": when_full, "durability": durability, "names": names, "met": Counter()}
    return type("Machine", (QueueMachine,), rows)


def replayed(path: Path) -> Counter[str]:
    """The faults a history met."""
    seed = json.loads(path.read_text())
    names = tuple(seed.get("consumers", ["main"]))
    machine = machine_type(seed["when_full"], seed.get("durability", "append"), names)()
    try:
        for name, arguments in [*seed["steps"], *LAST_STEPS]:
            step = getattr(machine, name)
            known = arguments.get("name", "main") in names
            if known and getattr(step, "possible", lambda machine: True)(machine):
                step(**arguments)
            machine.numbers_agree()
            machine.the_ledger_is_exact()
        assert machine.writer is not None and set(machine.consumers) == set(names)
        return machine.met
    finally:
        machine.teardown()


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_a_history_that_once_failed_agrees_with_a_list(path: Path) -> None:
    replayed(path)


def test_the_histories_that_once_failed_meet_every_fault() -> None:
    met = sum(map(replayed, SEEDS), Counter())
    assert set(met) == FAULTS


@pytest.mark.parametrize(
    ("when_full", "durability"),
    [
        ("reject", "append"),
        ("drop_oldest", "append"),
        ("block", "append"),
        ("block", "fsync"),
        ("drop_oldest", "fsync"),
    ],
)
def test_any_history_on_a_faulty_disk_agrees_with_a_list(when_full: str, durability: str) -> None:
    machine = machine_type(when_full, durability)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            derandomize=True,  # the same histories in every run; found ones become seeds
            stateful_step_count=50,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert {fault for fault in ALWAYS_MET if machine.met[fault]} == ALWAYS_MET

"""Q1: SIGKILL before every bytecode instruction of append, rotate, reuse, commit and recovery.

What must hold afterwards: every append that was acknowledged is there, byte for byte, once and in
order; what is there beyond it is the beginning of the one append in flight; the acknowledged commit
holds; a second recovery changes nothing; and the queue goes on.

The deaths are those of a succession, see `skyfarer.testing.succession`; some hundreds, spread over
all the steps, are died again by processes of their own, whose directory itself is then opened.
"""

from __future__ import annotations

from collections import Counter

import pytest

from skyfarer.testing.small_process import called_in_small_process

from .lives import BATCHES, WAYS, kill_lives
from .recoveries import kill_recoveries

PHASES = {
    "reject": {"create", "checkpoint", "append", "commit", "recovery"},
    "drop_oldest": {"append"},
    "fsync": {"append"},
}
LIFE_POINTS_MIN = {"reject": 12_000, "drop_oldest": 2_500, "fsync": 1_000}
RECOVERY_POINTS_MIN = 5_500
APART_POINTS_MIN = {"reject": 200, "drop_oldest": 40, "fsync": 20, "recovery": 80}


@pytest.mark.parametrize("way", WAYS)
def test_q01_a_kill_at_every_step_of_a_life_loses_nothing(memory_place, way, record_property):
    found = called_in_small_process(kill_lives, str(memory_place), way)
    whole = found["whole"]
    assert whole["oldest"] == len(BATCHES[0]) + 1
    overflow = whole["oldest"] - whole["committed"] if way == "drop_oldest" else 0
    assert whole["dropped"] == overflow
    hits = sum((Counter(share["hits"]) for share in found["shares"]), Counter())
    record_property("kill_points", dict(hits))
    assert sum(hits.values()) == found["points"] >= LIFE_POINTS_MIN[way]
    assert {name.split()[0] for name in hits} == PHASES[way]
    assert sum(share["apart"] for share in found["shares"]) >= APART_POINTS_MIN[way]


def test_q01_a_kill_at_every_step_of_recovery_and_of_its_recovery_changes_nothing(
    memory_place, record_property
):
    found = called_in_small_process(kill_recoveries, str(memory_place))
    record_property("kill_points", found["hits"])
    assert found["hits"][0] == found["points"]
    assert sum(found["hits"]) >= RECOVERY_POINTS_MIN
    assert found["apart"] >= APART_POINTS_MIN["recovery"]

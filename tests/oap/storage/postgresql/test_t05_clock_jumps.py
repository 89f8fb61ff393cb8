"""A keeper whose clock jumps, in a process of its own, over a server whose clock is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oap.storage.postgresql.keepers import fill, keeper_of
from oap.ttl.cluster_of import Told
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.storage.postgresql import PostgresStorage
from third_parties import faketime

HOUR_S, DAY_S, YEAR_S = 3_600, 86_400, 365 * 86_400
OWN = Node("10.0.0.1", 11800, is_self=True)
PROGRAM = """
import json, sys
from datetime import UTC
sys.path.insert(0, sys.argv[2])
from oap.storage.postgresql.test_t05_clock_jumps import OWN, PostgresStorage, Told, keeper_of

storage = PostgresStorage(sys.argv[1])
storage.start(UTC)
keeper = keeper_of(storage, Told([OWN]), "jumping")
for _ in sys.stdin:
    run = keeper.run()
    print(json.dumps([run.outcome, run.why, [f"{one.model} {one.day}" for one in run.dropped]]),
        flush=True)
storage.stop()
"""


class Jumping:
    def __init__(self, conninfo: str, clock: Path) -> None:
        self._clock = clock
        self.is_off_by(0)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, conninfo, str(Path(__file__).parents[3])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | faketime.changes(clock),
        )

    def is_off_by(self, seconds: int) -> None:
        whole = self._clock.with_suffix(".new")
        whole.write_text(f"{seconds:+d}\n")
        whole.replace(self._clock)

    def run(self) -> Any:
        """Outcome, why, and what was dropped."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def jumping(conninfo: str, storage: PostgresStorage, tmp_path: Path) -> Iterator[Jumping]:
    fill(storage, 6, 5, 1, 0)
    jumping = Jumping(conninfo, tmp_path / "clock")
    yield jumping
    jumping.process.kill()
    jumping.process.communicate()


def test_t05_a_keeper_whose_clock_jumps_deletes_nothing_and_says_why_until_it_is_set_back(
    jumping: Jumping, storage: PostgresStorage
) -> None:
    before = storage.day_tables()
    due = keeper_of(storage, Told([OWN]), "onlooker").planned().going
    for seconds in (HOUR_S, -HOUR_S, DAY_S, -DAY_S, YEAR_S, -YEAR_S):
        jumping.is_off_by(seconds)
        found = [jumping.run() for _ in range(2)]
        assert [(outcome, dropped) for outcome, _, dropped in found] == [("refused", [])] * 2
        which = "ahead of" if seconds > 0 else "behind"
        assert f"{which} the storage's, and more than 5 minutes" in found[-1][1]
        assert storage.day_tables() == before
    jumping.is_off_by(0)
    outcome, why, dropped = jumping.run()
    assert (outcome, dropped) == ("refused", [])
    assert "was set ahead by 36" in why
    assert jumping.run() == ["dropped", "", [f"{one.model} {one.day}" for one in due]]
    assert storage.day_tables() == [one for one in before if one not in due]

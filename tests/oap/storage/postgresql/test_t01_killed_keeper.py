"""A keeper that is killed while it deletes from a real server."""

from __future__ import annotations

from datetime import UTC

import pytest

from oap.storage.postgresql.keepers import fill, keeper_of
from oap.ttl.cluster_of import Told
from oap.ttl.keepers import OWN
from oap.ttl.killed import Saying, killed_at
from skyfarer.oap.storage.expiring import OUT_OF_SIGHT
from skyfarer.oap.storage.postgresql import PostgresStorage, schema

TABLES_DUE = 2


class SayingStorage(Saying, PostgresStorage):
    pass


def run_and_say(conninfo: str) -> None:
    """In a process of its own."""
    storage = SayingStorage(conninfo)
    storage.start(UTC)
    keeper_of(storage, Told([OWN]), "killed").run()
    storage.stop()


@pytest.mark.parametrize("moment", range(3 * TABLES_DUE))
def test_t01_a_keeper_killed_at_any_moment_of_its_run_is_followed_by_one_that_finishes(
    moment: int, conninfo: str, storage: PostgresStorage
) -> None:
    fill(storage, 6, 1, 0)
    keeper = keeper_of(storage, Told([OWN]), "next")
    there, due = storage.day_tables(), keeper.planned().going
    assert len(due) == TABLES_DUE
    assert killed_at(__name__, conninfo, moment)
    left = tuple(one for one in storage.day_tables() if one in due)
    assert left == due[(moment + 2) // 3 :]
    with storage._transaction() as cursor:
        cursor.execute("UPDATE lease SET expires_ms = 0")
    run = keeper.run()
    assert (run.outcome, run.dropped, run.left) == ("dropped" if left else "clean", left, 0)
    assert storage.day_tables() == [one for one in there if one not in due]
    with storage._reading() as cursor:
        hidden = [name for name in schema.present(cursor) if name.startswith(OUT_OF_SIGHT)]
        days = [f"segment_{one.day}" for one in storage.day_tables() if one.model == "segment"]
        counts = [cursor.execute(f"SELECT count(*) FROM {day}").fetchall() for day in days]
    assert counts == [[(1,)], [(1,)]]
    assert hidden == [] or not left, "it is swept with the next drop"

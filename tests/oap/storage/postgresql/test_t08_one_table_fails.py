"""One table of a real server cannot be dropped: all others that have expired go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC
from typing import TypeAlias

import psycopg
import pytest

from oap.storage.postgresql.keepers import fill, keeper_of
from oap.ttl.cluster_of import Told
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.core.expiry import DROP_WAITS_S_MAX
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.oap.ttl.keeper import LEASE_S
from third_parties.postgresql import PASSWORD, Server

OWNER = "keeper_of_tables"
SHORTEST_PERIOD_S = 60.0
Hindered: TypeAlias = Callable[[str, str], AbstractContextManager[None]]


@pytest.fixture
def conninfo(server: Server) -> str:
    """Of a user who may change what is his own, and nothing else."""
    admin = server.space()
    schema = admin.rpartition("search_path=")[2].strip("'")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(
            f"""DO $$ BEGIN CREATE ROLE {OWNER} LOGIN PASSWORD '{PASSWORD}';
            EXCEPTION WHEN duplicate_object THEN NULL; END $$"""  # type: ignore[arg-type]
        )
        connection.execute(f"ALTER SCHEMA {schema} OWNER TO {OWNER}")  # type: ignore[arg-type]
    return admin.replace("user=skyfarer", f"user={OWNER}")


@pytest.fixture
def storage(conninfo: str) -> Iterator[PostgresStorage]:
    storage = PostgresStorage(conninfo, fold_s=SHORTEST_PERIOD_S)
    storage.start(UTC)
    yield storage
    storage.stop()


@contextmanager
def owned_by_another(conninfo: str, table: str) -> Iterator[None]:
    with psycopg.connect(conninfo.replace(f"user={OWNER}", "user=skyfarer")) as connection:
        connection.execute(f"ALTER TABLE {table} OWNER TO skyfarer")  # type: ignore[arg-type]
    yield
    with psycopg.connect(conninfo.replace(f"user={OWNER}", "user=skyfarer")) as connection:
        connection.execute(f"ALTER TABLE {table} OWNER TO {OWNER}")  # type: ignore[arg-type]


@contextmanager
def read_by_another(conninfo: str, table: str) -> Iterator[None]:
    with psycopg.connect(conninfo) as connection:
        connection.execute(f"SELECT count(*) FROM {table}")  # type: ignore[arg-type]
        yield


@pytest.mark.parametrize(
    ("hindered", "said"),
    [(owned_by_another, "must be owner of table"), (read_by_another, "lock timeout")],
)
def test_t08_a_table_that_cannot_be_dropped_keeps_no_other(
    hindered: Hindered, said: str, storage: PostgresStorage, conninfo: str
) -> None:
    fill(storage, 6, 5, 1, 0)
    keeper = keeper_of(storage, Told([Node("a", 1, is_self=True)]), "node-a")
    due = list(keeper.planned().going)
    held = next(one for one in due if one.model == "segment")
    with hindered(conninfo, f"{held.model}_{held.day}"):
        run = keeper.run()
        assert (run.outcome, run.left) == ("failed", 1)
        assert list(run.dropped) == [one for one in due if one != held]
        ((failed, why),) = run.failed
        assert failed == held and said in why
        assert held in storage.day_tables()
    assert keeper.run().dropped == (held,)


def test_t08_a_drop_gives_up_before_its_lease_ends_and_a_lease_before_the_next_run() -> None:
    assert DROP_WAITS_S_MAX < LEASE_S < SHORTEST_PERIOD_S

"""Ten days in a minute: three OAPs on one ZooKeeper and one PostgreSQL, and what is left of it.

One OAP that keeps everything analyses ten days of traces. Then three that keep less take over: two
Aggregators and a Mixed one, which goes on receiving. The first of them begins to delete; a reader
holds one of the tables, so that it has to wait there, and is killed in the middle. The next node in
line ends what it began. What had expired is gone, to the table; of everything else not a byte has
changed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from skyfarer.oap.core.expiry import Kept
from skyfarer.oap.core.streams.catalog import kept
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.testing.programs import Oap, eventually
from skyfarer.testing.traces import segment
from third_parties.postgresql import PASSWORD, Server
from third_parties.zookeeper import ZooKeeperServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

DAYS = 10
RECORD_DAYS, METRICS_DAYS = 3, 7
A_DAY = 40
OF = {"segment_data": "segment"}
"""Model whose days a table goes with that is no model itself; those beside metrics go with them."""
TURN_WITHIN_S = 600.0
"""For the dead node to be missed: its session, and its lease."""


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    server = Server()
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def shared(database: Server, zookeeper: ZooKeeperServer) -> dict[str, str]:
    return {
        "SW_STORAGE": "postgresql",
        "SW_JDBC_URL": f"jdbc:postgresql://127.0.0.1:{database.port}/postgres",
        "SW_DATA_SOURCE_USER": "skyfarer",
        "SW_DATA_SOURCE_PASSWORD": PASSWORD,
        "SW_CLUSTER": "zookeeper",
        "SW_CLUSTER_ZK_HOST_PORT": zookeeper.address,
        "SW_CORE_DATA_KEEPER_EXECUTE_PERIOD": "60",
    }


@pytest.fixture
def trio(tmp_path: Path, shared: dict[str, str]) -> Iterator[list[Oap]]:
    """By the order in which they come to delete; the last one receives."""
    kept = {
        "SW_CORE_RECORD_DATA_TTL": str(RECORD_DAYS),
        "SW_CORE_METRICS_DATA_TTL": str(METRICS_DAYS),
    }
    oaps = [
        Oap(
            tmp_path / name,
            **shared,
            **kept,
            SW_CORE_ROLE="Mixed" if name == "c" else "Aggregator",
            SW_CLUSTER_INTERNAL_COM_HOST=f"127.0.0.{number}",
            SW_CLUSTER_INTERNAL_COM_PORT="11800",
        )
        for number, name in enumerate("abc", start=2)
    ]
    yield oaps
    for oap in oaps:
        oap.kill()


def test_exactly_what_has_expired_goes_though_the_keeper_is_killed_in_the_middle(
    tmp_path: Path, shared: dict[str, str], database: Server, trio: list[Oap]
) -> None:
    write_ten_days(tmp_path / "writer", shared)
    before = checksums(database)
    due = {table for table in before if expired(table)}
    for some in (due, set(before) - due):
        assert {"segment", "segment_data", "metrics_service", "appended_service"} <= models(some)
    for oap in trio:
        oap.spawn()
    for oap in trio:
        oap.await_ready()
    eventually(lambda: all(len(nodes(oap)) == 3 for oap in trio), 240, "all three know each other")
    first, second, third = trio
    assert "the first node is 127.0.0.2_11800" in delete(second)["why"]
    kill_in_the_middle(first, database, due)
    eventually(lambda: delete(second)["left"] == 0, TURN_WITHIN_S, "the next node ends it")
    after = checksums(database)
    assert set(before) - set(after) in (due, {table for table in before if expired(table)})
    assert after == {table: before[table] for table in after}
    assert out_of_sight(database) == []
    send(third, [segment("today", "i", "/after", now_ms(), 5, segment_id="after")])
    third.await_applied(1)
    assert delete(second)["outcome"] == "clean"


def write_ten_days(directory: Path, shared: Mapping[str, str]) -> None:
    writer = Oap(directory, **shared)
    writer.start()
    try:
        sent = [
            segment("shop", f"i{n % 3}", f"/e{n % 5}", at, 5 + n, segment_id=f"{day}-{n}")
            for day in range(DAYS)
            for n in range(A_DAY)
            for at in [now_ms() - day * 86_400_000 - n * 1000]
        ]
        send(writer, sent)
        writer.await_applied(len(sent))
        assert writer.stop() == 0
    finally:
        writer.kill()


def send(oap: Oap, segments: list[Any]) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        collect((one.SerializeToString() for one in segments), timeout=60)


def now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def day_of(days_ago: int) -> int:
    return int((datetime.now(UTC) - timedelta(days=days_ago)).strftime("%Y%m%d"))


def split(table: str) -> tuple[str, int]:
    model, _, day = table.rpartition("_")
    return model, int(day)


def models(tables: Iterable[str]) -> set[str]:
    return {split(table)[0] for table in tables}


def expired(table: str) -> bool:
    model, day = split(table)
    days = RECORD_DAYS if kept(OF.get(model, model)) is Kept.RECORD else METRICS_DAYS
    return day <= day_of(days)


def checksums(database: Server) -> dict[str, str]:
    """Of every table of a day that anybody can see, over all its rows, payloads among them; what
    was appended is folded."""
    storage = PostgresStorage(database.conninfo("postgres"))
    storage.start(UTC)
    try:
        storage.fold()
    finally:
        storage.stop()
    with database.connect("postgres") as connection:
        rows = connection.execute(
            """SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace
            AND relkind = 'r' AND relname ~ '_[0-9]{8}$' AND relname NOT LIKE 'dropped%'"""
        )
        return {name: checksum(connection, name) for (name,) in rows.fetchall()}


def checksum(connection: psycopg.Connection[Any], name: str) -> str:
    rows_as_text = "string_agg(t::text, '' ORDER BY t::text)"
    query = f"SELECT count(*) || md5(coalesce({rows_as_text}, '')) FROM {name} t"
    rows = connection.execute(query).fetchall()  # type: ignore[arg-type]
    return str(rows[0][0])


def kill_in_the_middle(keeper: Oap, database: Server, due: set[str]) -> None:
    """A reader holds the last table that is to go; the keeper drops others and waits for that."""
    named = [split(table) for table in due if kept(split(table)[0])]
    model, day = max(named, key=lambda one: (one[0], -one[1]))
    held = f"{model}_{day}"
    with database.connect("postgres") as reader:
        reader.execute("BEGIN")
        reader.execute(f"SELECT count(*) FROM {held}")  # type: ignore[arg-type]
        command = subprocess.Popen(ttl(keeper, "--now", "--force"), stderr=subprocess.DEVNULL)
        eventually(lambda: waits(database), 240, "the keeper waits for the reader")
        keeper.kill()
        command.wait(240)
        reader.execute("ROLLBACK")
    left = due & set(checksums(database))
    assert held in left
    assert left < due, "it was killed before it had dropped anything"


def waits(database: Server) -> bool:
    with database.connect("postgres") as connection:
        rows = connection.execute(
            """SELECT 1 FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE % RENAME TO %'"""
        ).fetchall()
    return bool(rows)


def out_of_sight(database: Server) -> list[str]:
    """What was taken from readers, and is still there."""
    with database.connect("postgres") as connection:
        rows = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'dropped%'")
        return [name for (name,) in rows.fetchall()]


def delete(oap: Oap) -> dict[str, Any]:
    """The summary of a run that was asked for."""
    done = subprocess.run(ttl(oap, "--now", "--force", "--json"), capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def ttl(oap: Oap, *flags: str) -> list[str]:
    return [sys.executable, "-m", "skyfarer.cli", "oap", "ttl", "--data-dir", str(oap.data), *flags]


def nodes(oap: Oap) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = oap.status("cluster/nodes")["nodes"]
    return listed

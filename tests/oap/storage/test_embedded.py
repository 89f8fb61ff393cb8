from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pytest

from contracts.storage_contract import (
    NOON,
    TABLE,
    StorageContract,
    batch,
    calls_of,
    delta,
    deltas_of,
    segment,
)
from skyfarer.base.errors import PermanentError
from skyfarer.base.units import MIB
from skyfarer.oap.core import ids
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.storage import Merge
from skyfarer.oap.core.traces import TraceCondition, TraceOrder
from skyfarer.oap.storage.embedded import EmbeddedStorage, schema


class TestEmbeddedStorage(StorageContract):
    pass


def test_raw_bytes_of_a_segment_are_stored_whole_with_their_kind(storage: EmbeddedStorage) -> None:
    payload = bytes(range(256))
    storage.apply(batch(0, 1, [segment("a", data_binary=payload, kind=31)]))
    rows = storage._cursor().execute("SELECT data_binary, time_bucket, kind FROM segment_20261115")
    assert rows.fetchall() == [(payload, 20261115120000, 31)]


def test_a_full_row_group_is_small(storage: EmbeddedStorage) -> None:
    storage.apply(batch(0, 1, [segment(str(number)) for number in range(20_000)]))
    assert _row_groups(storage) == 3


def test_a_file_with_large_row_groups_goes_on_with_small_ones(tmp_path: Path) -> None:
    path = tmp_path / "skyfarer.duckdb"
    for rows, at in ((122_880, 0), (2048, 1)):
        storage = EmbeddedStorage(row_group_rows=rows)
        storage.start(path, UTC)
        storage.apply(batch(at, at + 1, [segment(f"{at}-{number}") for number in range(5000)]))
        groups = _row_groups(storage)
        assert len(storage.trace("t", 20_000, MIB)) == 5000 * (at + 1)
        storage.stop()
    assert groups == 4


def _row_groups(storage: EmbeddedStorage) -> int:
    cursor = storage._cursor()
    cursor.execute("CHECKPOINT").fetchall()
    query = "SELECT max(row_group_id) + 1 FROM pragma_storage_info('segment_20261115')"
    return int(cursor.execute(query).fetchall()[0][0])


def test_a_path_is_no_part_of_the_statement(tmp_path: Path) -> None:
    path = tmp_path / "it's" / "skyfarer.duckdb"
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    storage.stop()
    assert path.exists()


def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "skyfarer.duckdb"
    first = EmbeddedStorage()
    first.start(path, UTC)
    first.apply(batch(0, 1, [segment("a")], [delta()]))
    first.stop()
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP INDEX segment_20261115_trace_id")
        connection.execute("ALTER TABLE segment_20261115 DROP COLUMN tags")
        connection.execute("ALTER TABLE segment_20261115 DROP COLUMN kind")
        connection.execute("UPDATE schema_version SET version = 1")
    for _ in range(2):
        storage = EmbeddedStorage()
        storage.start(path, UTC)
        at = storage.applied("queue-a")
        storage.apply(batch(at, at + 1, [segment(f"later-{at}", kind=31)]))
        storage.stop()
    with duckdb.connect(str(path)) as connection:
        kinds = connection.execute("SELECT segment_id, kind FROM segment_20261115").fetchall()
        versions = connection.execute("FROM schema_version").fetchall()
    assert kinds == [("a", 1), ("later-1", 31), ("later-2", 31)]
    assert versions == [(schema.VERSION,)]


def test_segments_of_the_third_version_are_given_tags(tmp_path: Path) -> None:
    path = tmp_path / "skyfarer.duckdb"
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    storage.apply(batch(0, 1, [segment("a")]))
    storage.stop()
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP INDEX segment_20261115_trace_id")
        connection.execute("ALTER TABLE segment_20261115 DROP COLUMN tags")
        connection.execute("CREATE INDEX segment_20261115_trace_id ON segment_20261115 (trace_id)")
        connection.execute("UPDATE schema_version SET version = 3")
    storage.start(path, UTC)
    storage.apply(batch(1, 2, [segment("b", tags=["k=v"])]))
    briefs = [
        storage.traces(TraceCondition(tags=tags), TraceOrder.DURATION, 0, 9)
        for tags in ((), ("k=v",))
    ]
    storage.stop()
    assert [[one.segment_id for one in some] for some in briefs] == [["a", "b"], ["b"]]


def test_tables_of_the_fourth_version_are_lists_afterwards(tmp_path: Path) -> None:
    path, table = tmp_path / "skyfarer.duckdb", "metrics_service_20261115"
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    row, merges = delta(spread={"1": 2, "é": 3}), {"spread": Merge.SUM}
    deltas = {"Service": deltas_of([row], merges, {"spread": TABLE})}
    storage.apply(batch(0, 1, metrics=deltas))
    storage.stop()
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"ALTER TABLE {table} ALTER spread TYPE MAP(VARCHAR, BIGINT) "
            "USING map_from_entries(spread)"
        )
        connection.execute("UPDATE schema_version SET version = 4")
    storage.start(path, UTC)
    storage.apply(batch(1, 2, metrics=deltas))
    series = storage.series("Service", ids.service_id("shop"), ["spread"], 20261115, 20261115)
    storage.stop()
    assert series == {20261115: {"spread": {"1": 4, "é": 6}}}


def test_metrics_of_the_second_version_are_kept_under_another_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "skyfarer.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE schema_version AS SELECT 2 AS version")
        for scope in ("service", "service_instance", "endpoint"):
            connection.execute(
                f"""CREATE TABLE metrics_{scope}_20261115 (
                entity_id VARCHAR, time_bucket BIGINT, calls BIGINT NOT NULL,
                latency_sum BIGINT NOT NULL, errors BIGINT NOT NULL,
                PRIMARY KEY (entity_id, time_bucket));
                INSERT INTO metrics_{scope}_20261115 VALUES ('a', 202611151200, 1, 2, 3)"""
            )
    for number in range(2):
        storage = EmbeddedStorage()
        storage.start(path, UTC)
        storage.apply(batch(number, number + 1, deltas=[delta()]))
        series = calls_of(storage, "Service", ids.service_id("shop"), 20261115, 20261115)
        assert series[20261115]["calls"] == number + 1
        storage.stop()
    with duckdb.connect(str(path)) as connection:
        old = connection.execute("FROM old_v2_metrics_service_instance_20261115").fetchall()
        versions = connection.execute("FROM schema_version").fetchall()
    assert old == [("a", 202611151200, 1, 2, 3)]
    assert versions == [(schema.VERSION,)]
    (record,) = caplog.records
    assert "3 tables are now named old_v2_" in record.getMessage()


def test_buckets_are_in_the_servers_zone(tmp_path: Path) -> None:
    storage = EmbeddedStorage()
    storage.start(tmp_path / "skyfarer.duckdb", ZoneInfo("Asia/Kolkata"))
    storage.apply(batch(0, 1, [segment("a")], [delta()]))
    shop = ids.service_id("shop")
    assert list(calls_of(storage, "Service", shop, 202611151730, 202611151730)) == [202611151730]
    storage.stop()


def test_minutes_that_fall_together_when_clocks_go_back_are_added(tmp_path: Path) -> None:
    storage = EmbeddedStorage()
    storage.start(tmp_path / "skyfarer.duckdb", ZoneInfo("Europe/Berlin"))
    first = 1_792_888_200_000 // 60_000  # 2026-10-25 02:30 in summer time, and again an hour later
    storage.apply(batch(0, 1, deltas=[delta(minute=first), delta(minute=first + 60)]))
    series = calls_of(storage, "Service", ids.service_id("shop"), 202610250000, 202610252359)
    assert {bucket: row["calls"] for bucket, row in series.items()} == {202610250230: 2}
    storage.stop()


def test_a_batch_waits_for_whoever_else_is_writing(storage: EmbeddedStorage) -> None:
    writer = threading.Thread(target=storage.apply, args=[batch(0, 1, deltas=[delta()])])
    with storage._transaction():
        writer.start()
        writer.join(0.3)
        assert storage.applied("queue-a") == 0
    writer.join(30)
    assert storage.applied("queue-a") == 1


def test_a_second_process_is_refused_by_name(storage: EmbeddedStorage, tmp_path: Path) -> None:
    program = (
        "import sys; from datetime import UTC; from pathlib import Path\n"
        "from skyfarer.oap.storage.embedded import EmbeddedStorage\n"
        "EmbeddedStorage().start(Path(sys.argv[1]), UTC)"
    )
    path = tmp_path / "skyfarer.duckdb"
    other = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert other.returncode != 0
    assert f"cannot open the storage file {path}" in other.stderr


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "skyfarer.duckdb"
    first = EmbeddedStorage()
    first.start(path, UTC)
    first.stop()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(PermanentError, match="has schema 99"):
        EmbeddedStorage().start(path, UTC)


def test_start_and_stop_are_safe_twice_and_unstarted(tmp_path: Path) -> None:
    storage, path = EmbeddedStorage(), tmp_path / "skyfarer.duckdb"
    storage.stop()
    storage.start(path, UTC)
    storage.start(path, UTC)
    storage.stop()
    storage.stop()
    with pytest.raises(PermanentError, match="not started"):
        storage.applied("queue-a")


def test_ids_go_on_where_they_were_after_a_restart(tmp_path: Path) -> None:
    for number in range(3):
        storage = EmbeddedStorage()
        storage.start(tmp_path / "skyfarer.duckdb", UTC)
        names = [Inventory(InventoryScope.ENDPOINT, f"/{n}", 2) for n in range(number + 1)]
        storage.apply(batch(number, number + 1, inventories=names))
        found = storage.inventories_by_id(InventoryScope.ENDPOINT, range(9))
        assert {key: row.name for key, row in found.items()} == {
            n + 2: f"/{n}" for n in range(number + 1)
        }
        storage.stop()


WRITER = """
import sys
from datetime import UTC
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from contracts.storage_contract import batch, delta, segment
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.storage.embedded import EmbeddedStorage
storage = EmbeddedStorage()
storage.start(Path(sys.argv[1]), UTC)
number = storage.applied("queue-a")
while True:
    names = [Inventory(InventoryScope.SERVICE, f"s{number}")]
    names.insert(0, Inventory(InventoryScope.SERVICE, "first", heartbeat_time=number + 1))
    one = batch(number, number + 1, [segment(f"s{number}")], [delta()], inventories=names)
    storage.apply(one)
    number += 1
    print(number, flush=True)
"""


def test_a_killed_process_keeps_what_was_applied_and_nothing_in_part(tmp_path: Path) -> None:
    path, applied = tmp_path / "skyfarer.duckdb", 0
    for acknowledged in (3, 17, 40):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, Path(__file__).parents[2]],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(acknowledged):
            applied = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        storage = EmbeddedStorage()
        storage.start(path, UTC)
        reached = storage.applied("queue-a")
        assert reached >= applied
        series = calls_of(storage, "Service", ids.service_id("shop"), 202611151200, 202611151200)
        assert series[202611151200]["calls"] == reached
        (stored,) = storage._cursor().execute("SELECT count(*) FROM segment_20261115").fetchall()
        assert stored == (reached,)
        registered = storage.inventories_by_id(InventoryScope.SERVICE, range(2 * reached))
        assert [registered[number + 3].name for number in range(reached)] == [
            f"s{number}" for number in range(reached)
        ]
        assert (registered[2].name, registered[2].heartbeat_time) == ("first", reached)
        assert len(registered) == reached + 1
        storage.stop()


def test_noon_is_where_the_contract_says() -> None:
    assert NOON == 1_794_744_000_000

"""The PostgreSQL storage as it is measured: on a server of its own, which syncs what it commits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import week
from skyfarer.oap.core.storage import Analysed, Deltas
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.oal.plan import SourcePlan
from skyfarer.oap.storage.buckets import minute_buckets
from skyfarer.oap.storage.postgresql import (
    PostgresStorage,
    copying,
    folding,
    metrics,
    packed,
    tables,
)
from skyfarer.oap.storage.postgresql.columns import KEYS
from storage_merging import WIDE, Batches, deltas

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from third_parties.postgresql import Server

STOP_S = 10.0
INDEX_MEMORY = "512MB"
NS_A_SECOND = 1_000_000_000


class Postgres:
    name = "postgresql"
    plainly = "bare COPY"
    in_process = False

    def __init__(self, memory: str = "1GB") -> None:
        """FileNotFoundError where no server is installed."""
        self.server = Server(durable=True, shared_buffers=memory, max_wal_size="8GB")
        self.server.start()
        self.storage = PostgresStorage(self.server.database())
        self.storage.start(UTC)
        self.storage._stop_folding(STOP_S)  # it is called when it is to be measured

    def store_segments(self, rows: pa.Table) -> None:
        first = self.storage.applied("week")
        self.storage.apply(Analysed("week", first, first + rows.num_rows, rows, {}))

    def store_endpoints(self, day: int, plan: SourcePlan, rows: Iterator[pa.Table]) -> None:
        """Into the table that a batch has made, past the merge, in the order of time. Its indices
        are made when all is there: to keep them up to date with each row takes twice as long."""
        Batches(self.storage).apply({plan.source: deltas(plan, 1, "first", week.minute_of(day))})
        self.storage.fold()
        table = f"metrics_endpoint_{week.day_bucket(day)}"
        with self.storage._transaction() as cursor:
            cursor.execute(f"TRUNCATE {table}")
            indices = _without_indices(cursor, table)
            for some in rows:
                copying.append(cursor, table, _as_stored(some))
            cursor.execute(f"SET LOCAL maintenance_work_mem = '{INDEX_MEMORY}'")
            for statement in indices:
                cursor.execute(statement)

    def fold(self) -> None:
        """As it is done in the background, within seconds."""
        self.storage.fold()

    def batches_a_fold(self, rows: int) -> int:
        """Of many rows fewer: a table that has ROWS_MANY is folded at once."""
        return min(int(folding.FOLD_S), -(-folding.ROWS_MANY // rows))

    def server_cpu_s(self) -> float:
        """Of the process that batches and folds have, which stays theirs."""
        with self.storage._transaction() as cursor:
            ((process,),) = cursor.execute("SELECT pg_backend_pid()").fetchall()
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / NS_A_SECOND

    def settle(self) -> None:
        """As the OAP and the server's own vacuum would have left it: hours and days that are over
        are packed, which the last ones are not."""
        while self.storage.pack():
            pass
        with self.server.connect(self.storage._conninfo.split("dbname=")[1].split()[0]) as own:
            own.execute("VACUUM ANALYZE")
            own.execute("CHECKPOINT")

    def files_of(self, table: str) -> tuple[Path, int]:
        with self.storage._reading() as cursor:
            cursor.execute("SELECT pg_total_relation_size(%s::text::regclass)", [table])
            ((size,),) = cursor.fetchall()
            cursor.execute("SELECT current_setting('data_directory')")
            ((directory,),) = cursor.fetchall()
        return Path(directory), size

    def look_up(self, day: int, segment_id: str) -> object:
        day_of = week.day_bucket(day)
        with self.storage._looking_up() as cursor:
            query = f"""SELECT * FROM segment_{day_of} JOIN segment_data_{day_of} USING (data_row)
                WHERE segment_id = %s"""
            return cursor.execute(query, [segment_id]).fetchall()

    def forget(self) -> None:
        self.storage._remembered = packed.Remembered()

    def plain(self, stored: Deltas) -> Mapping[str, Callable[[], None]]:
        """The rows that the merge brings, copied into a table of the same columns, without a key
        and with that of metrics."""
        (wide,) = metrics.wide(WIDE, stored, minute_buckets(stored.rows, UTC))
        rows, key = _as_merged(wide), ", PRIMARY KEY (entity_id, time_bucket)"
        return {
            "bare COPY": self._copy("plain", rows, ""),
            "COPY with a key": self._copy("plain_keyed", rows, key),
        }

    def plain_minutes(self, brought: Deltas) -> Callable[[], None]:
        (wide,) = metrics.wide(WIDE, brought, minute_buckets(brought.rows, UTC))
        return self._copy("plain_minutes", _as_stored(_minutes(wide)), "")

    def _copy(self, table: str, rows: pa.Table, key: str) -> Callable[[], None]:
        types = {pa.string(): "TEXT", pa.int64(): "BIGINT", pa.int32(): "INTEGER"}
        columns = ", ".join(f'"{field.name}" {types[field.type]}' for field in rows.schema)
        with self.storage._transaction() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
            cursor.execute(f"CREATE TABLE {table} ({columns}{key})")

        def copy() -> None:
            with self.storage._transaction() as cursor:
                cursor.execute(f"TRUNCATE {table}")
                copying.append(cursor, table, rows)

        return copy

    def stop(self) -> None:
        self.storage.stop()
        self.server.close()


def _without_indices(cursor: copying.Cursor, table: str) -> list[str]:
    """Drops the table's key and indices; what makes them again as they were."""
    cursor.execute(
        """SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid = %s::text::regclass AND contype = 'p'""",
        [table],
    )
    keys = cursor.fetchall()
    for name, _ in keys:
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", [table])
    indices = cursor.fetchall()
    for name, _ in indices:
        cursor.execute(f"DROP INDEX {name}")
    made = [f"ALTER TABLE {table} ADD CONSTRAINT {name} {key}" for name, key in keys]
    return made + [statement for _, statement in indices]


def _as_merged(wide: metrics.Wide) -> pa.Table:
    """A row a minute, hour and day of each entity, the days first."""
    found = []
    rows = _minutes(wide)
    for precision in reversed(PRECISIONS):
        buckets = pa.array(rows["time_bucket"].to_numpy() // precision)
        found.append(rows.set_column(1, "time_bucket", buckets))
    return _as_stored(pa.concat_tables(found))


def _minutes(wide: metrics.Wide) -> pa.Table:
    names = [*KEYS, *(column.name for column in wide.columns)]
    return wide.identified(wide.rows).select(names)


def _as_stored(rows: pa.Table) -> pa.Table:
    """Tables as texts, with their lengths, as `postgresql.columns` has them."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_map(field.type):
            texts = tables.written(rows[field.name])
            rows = rows.set_column(place, field.name, texts)
            rows = rows.append_column(f"{field.name} +", pc.binary_length(texts))
    return rows

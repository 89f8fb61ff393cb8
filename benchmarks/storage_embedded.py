"""The embedded storage as it is measured: a week of data in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from pathlib import Path

import pyarrow as pa

import week
from skyfarer.oap.core.storage import Analysed, Deltas
from skyfarer.oap.oal.plan import SourcePlan
from skyfarer.oap.storage.buckets import minute_buckets
from skyfarer.oap.storage.embedded import EmbeddedStorage, tables
from skyfarer.oap.storage.entities import services
from storage_merging import Batches, deltas


class Embedded:
    name = "duckdb"
    plainly = "plain INSERT"
    in_process = True

    def __init__(self, directory: Path) -> None:
        self.storage = EmbeddedStorage()
        self.storage.start(directory / "storage.duckdb", UTC)

    def store_segments(self, rows: pa.Table) -> None:
        first = self.storage.applied("week")
        self.storage.apply(Analysed("week", first, first + rows.num_rows, rows, {}))

    def store_endpoints(self, day: int, plan: SourcePlan, rows: Iterator[pa.Table]) -> None:
        """Into the table that a batch has made, past the merge: ten million rows would take it
        half an hour. They lie in the order in which the merge would have left them."""
        made = deltas(plan, 1, "first", week.minute_of(day))
        Batches(self.storage).apply({plan.source: made})
        cursor, table = self.storage._cursor(), f"metrics_endpoint_{week.day_bucket(day)}"
        cursor.execute(f"DELETE FROM {table}")
        for some in rows:
            cursor.register("wide", tables.as_lists(some))
            cursor.execute(f"INSERT INTO {table} BY NAME FROM wide")

    def settle(self) -> None:
        self.storage._cursor().execute("CHECKPOINT")

    def files_of(self, table: str) -> tuple[Path, int]:
        return Path(), 0

    def look_up(self, day: int, segment_id: str) -> object:
        query = f"SELECT * FROM segment_{week.day_bucket(day)} WHERE segment_id = ?"
        return self.storage._cursor().execute(query, [segment_id]).fetchall()

    def forget(self) -> None:
        """Nothing is remembered but by DuckDB itself."""

    def plain(self, stored: Deltas) -> Mapping[str, Callable[[], None]]:
        """As DuckDB takes the Arrow table by itself, with MAPs, and as it is stored, with lists."""
        table = f"metrics_cache_access_{week.day_bucket(0)}"
        cursor = self.storage._cursor()
        lists = cursor.sql(f"FROM {table}").to_arrow_table()
        forms = {"plain INSERT": tables.as_maps(lists), "INSERT as stored": lists}
        return {
            name: self._insertion(f"plain_{n}", rows)
            for n, (name, rows) in enumerate(forms.items())
        }

    def plain_minutes(self, brought: Deltas) -> Callable[[], None]:
        """As DuckDB takes the Arrow table by itself, with MAPs: what is brought, and no more."""
        rows = brought.rows
        keys = {"entity_id": services(rows), "time_bucket": minute_buckets(rows, UTC)}
        return self._insertion(
            "plain_minutes", pa.table(keys | {name: rows[name] for name in brought.merges})
        )

    def fold(self) -> None:
        """Nothing is left for later."""

    def batches_a_fold(self, rows: int) -> int:
        """Each batch does it all."""
        return 1

    def server_cpu_s(self) -> float:
        """There is no server."""
        return 0.0

    def _insertion(self, table: str, rows: pa.Table) -> Callable[[], None]:
        cursor = self.storage._cursor()
        cursor.register("rows", rows)
        cursor.execute(f"CREATE TABLE {table} AS FROM rows LIMIT 0")

        def insert() -> None:
            with self.storage._transaction() as writing:
                writing.register("rows", rows)
                writing.execute(f"INSERT INTO {table} BY NAME FROM rows")

        return insert

    def stop(self) -> None:
        self.storage.stop()

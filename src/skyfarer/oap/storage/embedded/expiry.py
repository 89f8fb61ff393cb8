"""Tables of days that expire: listed by their names, dropped under a lease, and never made again.

    lease              name, epoch, holder, expires_ms: who may drop, until when
    expired_through    model, day: the last day of it that was dropped; rows of that day, or of an
                       older one, are refused

Only tables of declared models, and of metrics of an older or a newer program, are listed, and only
if their first columns are those of such a table: whatever else the file has, those that are kept
from an old version among them, is nobody's to drop. The clock of this storage is that of its
process, since it lives there.

Metrics go in two transactions: they are put out of sight under the lease, by a new name, and then
the table is dropped. Whatever ends the process in between, the next drop of any day takes up what
is left. Tables with an index cannot be renamed in DuckDB, and are dropped at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from threading import Lock
from typing import Final

import duckdb

from skyfarer.base.clock import Clock
from skyfarer.oap.core.expiry import DayTable, DroppedDayError, Kept, Lease
from skyfarer.oap.core.streams.catalog import kept
from skyfarer.oap.core.streams.declaration import COLUMNS_TOLD
from skyfarer.oap.core.streams.metrics import PREFIX
from skyfarer.oap.storage.embedded import metrics, schema
from skyfarer.oap.storage.expiring import (
    OUT_OF_SIGHT,
    check,
    day_table,
    is_out_of_sight,
    lasts,
    name_of,
)
from skyfarer.oap.storage.seen import Seen

DDL: Final = """
CREATE TABLE IF NOT EXISTS lease (
    name VARCHAR PRIMARY KEY, epoch BIGINT NOT NULL, holder VARCHAR NOT NULL,
    expires_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS expired_through (model VARCHAR PRIMARY KEY, day INTEGER NOT NULL);
"""


class Expiry(ABC):
    """DayTables, and what the writing half has to know of them."""

    _clock: Clock
    _applying: Lock
    _tables: metrics.Tables
    _seen: Seen
    _expired: dict[str, int]  # as `expired_through` has it

    @abstractmethod
    def _cursor(self) -> duckdb.DuckDBPyConnection: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def day_tables(self) -> list[DayTable]:
        found = (day_table(*one) for one in schema.columns(self._cursor(), COLUMNS_TOLD).items())
        return sorted(filter(None, found), key=lambda one: (one.model, one.day))

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        with self._transaction() as cursor:
            now_ms = self.now_ms()
            last = _lease(cursor, name)
            if last is not None and last.holder != holder and lasts(last, now_ms):
                return None
            epoch = 1 if last is None else last.epoch + (last.holder != holder)
            lease = Lease(name, holder, epoch, now_ms + int(seconds * 1000))
            cursor.execute(
                """INSERT INTO lease VALUES ($name, $epoch, $holder, $expires_ms)
                ON CONFLICT DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder,
                    expires_ms = excluded.expires_ms""",
                lease.__dict__,
            )
            return lease

    def last_lease(self, name: str) -> Lease | None:
        return _lease(self._cursor(), name)

    def drop(self, lease: Lease, table: DayTable) -> bool:
        there = self._put_out_of_sight(lease, table)
        self._sweep()
        return there

    def _put_out_of_sight(self, lease: Lease, table: DayTable) -> bool:
        with self._applying:
            with self._transaction() as cursor:
                present = schema.columns(cursor, COLUMNS_TOLD)
                name = name_of(table, present)
                check(lease, _lease(cursor, lease.name), self.now_ms())
                if there := name in present:
                    cursor.execute(_leaving(table.model, name))
                cursor.execute(
                    """INSERT INTO expired_through VALUES (?, ?)
                    ON CONFLICT DO UPDATE SET day = greatest(day, excluded.day)""",
                    [table.model, table.day],
                )
            self._expired[table.model] = max(self._expired.get(table.model, 0), table.day)
            self._tables.pop(name, None)
            self._seen = Seen()
        return there

    def _sweep(self) -> None:
        there = schema.columns(self._cursor(), COLUMNS_TOLD)
        left = [name for name, first in there.items() if is_out_of_sight(name, first)]
        for name in left:
            with self._transaction() as cursor:
                cursor.execute(f"DROP TABLE IF EXISTS {name}")

    def expired(self) -> Mapping[Kept, int]:
        last: dict[Kept, int] = {}
        for model, day in list(self._expired.items()):
            if (how := kept(model)) is not None:
                last[how] = max(day, last.get(how, 0))
        return last

    def _refuse_dropped(self, day: int, *models: str) -> None:
        """For a batch that is being applied, with the oldest day of its rows of these models."""
        for model in models:
            if day <= self._expired.get(model, 0):
                raise DroppedDayError(
                    f"a batch has rows of {model} of {day}, and {self._expired[model]} was dropped"
                    " as expired: it is analysed again without them"
                )


def read_expired(cursor: duckdb.DuckDBPyConnection) -> dict[str, int]:
    return dict(cursor.execute("SELECT model, day FROM expired_through").fetchall())


def _lease(cursor: duckdb.DuckDBPyConnection, name: str) -> Lease | None:
    query = "SELECT name, holder, epoch, expires_ms FROM lease WHERE name = ?"
    rows = cursor.execute(query, [name]).fetchall()
    return Lease(*rows[0]) if rows else None


def _leaving(model: str, table: str) -> str:
    if model.startswith(PREFIX):
        return f"ALTER TABLE {table} RENAME TO {OUT_OF_SIGHT}{table}"
    return f"DROP TABLE {table}"

"""Tables of days that expire: listed by their names, dropped under a lease, and never made again.

    lease              name, epoch, holder, expires_ms: who may drop, until when
    expired_through    model, day: the last day of it that was dropped; rows of that day, or of an
                       older one, are refused

Only tables of declared models, and of metrics of an older or a newer program, are listed, and only
if their first columns are those of such a table: whatever else the schema has is nobody's to drop.
The clock is the server's. A day is dropped, and tables are made, under the same lock
(`Lock.SCHEMA`): who makes a table has looked at `expired_through` under it. A batch that had seen
its table before it was dropped finds none, is refused as a whole, and looks again.

A day goes in two transactions: it is put out of sight under the lease, by a new name, and then the
table is dropped. Whatever ends a node in between, the next drop of any day takes up what is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from threading import Lock
from typing import Final

from skyfarer.oap.core.expiry import DROP_WAITS_S_MAX, DayTable, DroppedDayError, Kept, Lease
from skyfarer.oap.core.streams.catalog import begins, kept
from skyfarer.oap.core.streams.declaration import COLUMNS_TOLD
from skyfarer.oap.core.streams.metrics import PREFIX
from skyfarer.oap.storage.expiring import (
    DAY_TABLE,
    OUT_OF_SIGHT,
    First,
    check,
    day_table,
    is_ours,
    is_out_of_sight,
    lasts,
    name_of,
)
from skyfarer.oap.storage.postgresql import (
    appended,
    metrics,
    packed,
    schema,
    segments,
)
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.models import TEXT
from skyfarer.oap.storage.seen import Seen

DDL: Final = f"""
CREATE TABLE IF NOT EXISTS lease (
    name {TEXT} PRIMARY KEY, epoch BIGINT NOT NULL, holder {TEXT} NOT NULL,
    expires_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS expired_through (model {TEXT} PRIMARY KEY, day INTEGER NOT NULL);
"""
_NOW_MS: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_WAITS_MAX: Final = 5
"""Of a drop, one after the other: for the schema, a table, the part of it, packs and the lease."""
_PARTS: Final = {segments.NAME: (segments.DATA,)}
"""Model → tables that go with its own, in one transaction: half of it could not be read."""


class Expiry(ABC):
    """DayTables, and what the writing half has to know of them."""

    _applying: Lock
    _tables: metrics.Tables
    _seen: Seen

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Cursor]: ...

    def now_ms(self) -> int:
        with self._reading() as cursor:
            return _now_ms(cursor)

    def day_tables(self) -> list[DayTable]:
        with self._reading() as cursor:
            found = [day_table(*one) for one in schema.columns(cursor, COLUMNS_TOLD).items()]
        return sorted(filter(None, found), key=lambda one: (one.model, one.day))

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        with self._transaction() as cursor:
            cursor.execute("LOCK TABLE lease IN SHARE ROW EXCLUSIVE MODE")
            now_ms, last = _now_ms(cursor), _lease(cursor, name)
            if last is not None and last.holder != holder and lasts(last, now_ms):
                return None
            epoch = 1 if last is None else last.epoch + (last.holder != holder)
            lease = Lease(name, holder, epoch, now_ms + int(seconds * 1000))
            cursor.execute(
                """INSERT INTO lease (name, epoch, holder, expires_ms)
                VALUES (%(name)s, %(epoch)s, %(holder)s, %(expires_ms)s)
                ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder,
                    expires_ms = excluded.expires_ms""",
                lease.__dict__,
            )
            return lease

    def last_lease(self, name: str) -> Lease | None:
        with self._reading() as cursor:
            return _lease(cursor, name, lock="")

    def drop(self, lease: Lease, table: DayTable) -> bool:
        there = self._put_out_of_sight(lease, table)
        self._sweep()
        return there

    def _put_out_of_sight(self, lease: Lease, table: DayTable) -> bool:
        with self._applying:
            with self._transaction() as cursor:
                wait_ms = int(DROP_WAITS_S_MAX / _WAITS_MAX * 1000)
                cursor.execute(f"SET LOCAL lock_timeout = {wait_ms}")
                schema.take(cursor, schema.Lock.SCHEMA)
                present = schema.columns(cursor, COLUMNS_TOLD)
                name = name_of(table, present)
                names = [name, *(f"{part}_{table.day:08d}" for part in _parts(table.model))]
                for one in (one for one in names if is_ours(one, present.get(one, ()), _begins)):
                    cursor.execute(f"ALTER TABLE {one} RENAME TO {OUT_OF_SIGHT}{one}")
                packed.forget(cursor, name, 0)
                cursor.execute(
                    """INSERT INTO expired_through AS t VALUES (%s, %s)
                    ON CONFLICT (model) DO UPDATE SET day = greatest(t.day, excluded.day)""",
                    [table.model, table.day],
                )
                # Last: to rename, it may have waited for readers.
                check(lease, _lease(cursor, lease.name), _now_ms(cursor))
            for one in names:
                self._tables.pop(one, None)
            self._seen = Seen()
        return name in present

    def _sweep(self) -> None:
        """The server removes the files at the end, when it has given its locks back already."""
        with self._transaction() as cursor:
            schema.take(cursor, schema.Lock.SCHEMA)
            for name, first in schema.columns(cursor, COLUMNS_TOLD).items():
                if is_out_of_sight(name, first, _begins):
                    cursor.execute(f"DROP TABLE {name}")

    def expired(self) -> Mapping[Kept, int]:
        last: dict[Kept, int] = {}
        with self._reading() as cursor:
            days = _expired(cursor)
        for model, day in days.items():
            if (how := kept(model)) is not None:
                last[how] = max(day, last.get(how, 0))
        return last


def refuse_dropped(cursor: Cursor, tables: Iterable[str]) -> None:
    """DroppedDayError when one of these tables is of a day that was dropped, or before it."""
    last = _expired(cursor)
    for name in sorted(tables):
        found = DAY_TABLE.fullmatch(name)
        if found and int(found[2]) <= last.get(found[1], 0):
            raise DroppedDayError(
                f"a batch has rows of {found[1]} of {found[2]}, and {last[found[1]]} was dropped"
                " as expired: it is analysed again without them"
            )


def _expired(cursor: Cursor) -> dict[str, int]:
    return dict(cursor.execute("SELECT model, day FROM expired_through").fetchall())


def _now_ms(cursor: Cursor) -> int:
    return int(cursor.execute(f"SELECT {_NOW_MS}").fetchall()[0][0])


def _lease(cursor: Cursor, name: str, lock: str = "FOR UPDATE") -> Lease | None:
    """Locked: who would take it over waits for the end of this transaction."""
    query = f"SELECT name, holder, epoch, expires_ms FROM lease WHERE name = %s {lock}"
    rows = cursor.execute(query, [name]).fetchall()
    return Lease(*rows[0]) if rows else None


def _parts(model: str) -> tuple[str, ...]:
    """In the order in which they are locked."""
    if model.startswith(PREFIX):
        return (appended.appended_to(model),)
    return _PARTS.get(model, ())


def _begins(model: str) -> First:
    """Of parts too."""
    if model.startswith(appended.PREFIX):
        return appended.FIRST
    return segments.DATA_FIRST if model == segments.DATA else begins(model)

"""What searches have in common: a bound on their time, conditions as SQL, bytes read piecemeal.

Bytes are fetched a few rows at a time: one row may be several MiB, and there may be thousands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final, NamedTuple

import duckdb

from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.deadline import left_s
from skyfarer.oap.core.events import EventCondition
from skyfarer.oap.core.logs import LogCondition
from skyfarer.oap.core.traces import TraceCondition
from skyfarer.oap.storage.buckets import has_day
from skyfarer.oap.storage.embedded.deadlines import Deadlines
from skyfarer.oap.storage.embedded.failures import told

READ_TIMEOUT_S = 10.0
ROWS_PER_FETCH = 32
WITHIN: Final = "time_bucket BETWEEN $first AND $last"
_DEADLINES: Final = Deadlines()


@contextmanager
def bounded(cursor: duckdb.DuckDBPyConnection, timeout_s: float = READ_TIMEOUT_S) -> Iterator[None]:
    """Ends what the cursor does when its time is over, or that of whoever asked, as RetryableError.
    All it reads is of one `snapshot`: a day that is dropped meanwhile is still there for it."""
    timeout_s = left_s(timeout_s)
    try:
        with _DEADLINES.within(timeout_s, cursor.interrupt), snapshot(cursor):
            yield
    except RetryableError as error:
        if not isinstance(error.__cause__, duckdb.InterruptException):
            raise
        raise RetryableError(
            f"storage was searched for {timeout_s:.3g} s without an end; ask for a shorter time"
        ) from error.__cause__


@contextmanager
def snapshot(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Tables and row numbers hold within a transaction."""
    with told("read from"):
        cursor.begin()
        try:
            yield
        finally:
            cursor.rollback()


def asked(
    condition: TraceCondition | LogCondition | EventCondition,
    tests: Mapping[str, str],
    tags: Sequence[str] = (),
) -> tuple[list[str], dict[str, object]]:
    """Of `tests` (field of the condition → what it asks of a row) those that are asked for, tags
    and time, and what they bind: a value under its field's name."""
    values = {name: getattr(condition, name) for name in tests}
    values = {name: value for name, value in values.items() if value is not None}
    having, bound = tagged(tags)
    found = ["true", *(tests[name] for name in values), *having]
    values |= bound
    if condition.between is not None:
        found.append(WITHIN)
        values["first"], values["last"] = condition.between
    return found, values


def tagged(tags: Sequence[str]) -> tuple[list[str], dict[str, object]]:
    """What is asked of a row that has all these tags, and what it binds."""
    found = [f"list_contains(tags, $tag_{n})" for n in range(len(tags))]  # faster than list_has_all
    return found, {f"tag_{n}": tag for n, tag in enumerate(tags)}


def by_day(
    tables: Sequence[str],
    tests: Sequence[str],
    values: Mapping[str, object],
    between: tuple[int, int] | None,
) -> tuple[dict[str, str], dict[str, object]]:
    """The tests of each table, and what they bind; of a day that is asked for as a whole no row's
    time is looked at."""
    bounds = dict(zip(("first", "last"), between or (), strict=False))
    parts = [table for table in tables if between and not has_day(between, int(table[-8:]))]
    timeless = [test for test in tests if test != WITHIN]
    found = {
        table: " AND ".join([*timeless, WITHIN] if table in parts else timeless) for table in tables
    }
    kept = {name: value for name, value in values.items() if name not in bounds}
    return found, {**kept, **bounds} if parts else kept


class Place(NamedTuple):
    """Of a row, within a `snapshot`."""

    table: str
    row: int


def blobs(
    cursor: duckdb.DuckDBPyConnection, column: str, places: Sequence[Place], bytes_max: int
) -> Iterator[bytes | None]:
    """One a place, in their order; None from the first for which the bytes do not suffice."""
    left = bytes_max
    for table, members in groupby(places, key=lambda place: place.table):
        rows = [place.row for place in members]
        for start in range(0, len(rows), ROWS_PER_FETCH):
            some = rows[start : start + ROWS_PER_FETCH]
            found = _fetched(cursor, table, column, some) if left > 0 else {}
            for row in some:
                data = found.get(row)
                left -= len(data or b"")
                yield data if left >= 0 else None


def _fetched(
    cursor: duckdb.DuckDBPyConnection, table: str, column: str, rows: Sequence[int]
) -> dict[int, bytes]:
    query = f"SELECT rowid, {column} FROM {table} WHERE rowid IN (SELECT unnest(?))"
    return dict(cursor.execute(query, [rows]).fetchall())

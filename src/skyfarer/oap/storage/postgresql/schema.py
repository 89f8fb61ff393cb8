"""Tables of the PostgreSQL storage: the fixed ones, and how those of days come to be.

Time series lie in one table a day (`metrics_service_20261115`, `segment_20261115`), so that data
expires by dropping whole tables. Names of such tables are built from our own names and an integer
alone; everything that came from outside is a bound parameter, but for the names of accumulators,
which are checked. What the tables of streams look like follows from their declarations (`models`);
those that are spelt out are this storage's own books.

Tables are made and given columns in a transaction of their own, before the batch that needs them:
a statement that changes a table waits for everybody who uses it, and who waits so must hold nothing
that others wait for. Only one node at a time does it (`Lock.SCHEMA`), since `IF NOT EXISTS` is no
promise between two that run at once, and it makes only what is missing (`make`): an index that is
there already would still be waited for. Nothing is ever dropped here, and no column changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import tzinfo
from enum import IntEnum
from typing import Final

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.core.streams.catalog import LASTING
from skyfarer.oap.core.time_bucket import day_of
from skyfarer.oap.core.zone import check_zone, name_of
from skyfarer.oap.storage.postgresql import models, segments
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.models import TEXT

VERSION: Final = 4
"""1 had no appended tables, and other names for columns of metrics (`upgrading`). 2 had no packed
ones: its programs would change rows and leave what is packed of them as it was. 3 had no bundles:
its programs would take them for rows."""
SECOND_MAX: Final = 9999_12_31_23_59_59
COLUMNS_MAX: Final = 1600
"""Of a table, says PostgreSQL."""
_MADE: Final = re.compile(r"\s*CREATE (TABLE|INDEX|SEQUENCE) IF NOT EXISTS ([a-z0-9_]+)")
_LOCKS: Final = 0x736B79  # "sky": the first of the two numbers of our advisory locks


class Lock(IntEnum):
    """Advisory locks of a transaction, taken in this order by whoever takes several."""

    SCHEMA = 1  # who makes tables
    MERGING = 2  # who changes rows that others change too
    FOLDING = 3  # who takes appended metrics into the merged ones, or packs these


def take(cursor: Cursor, lock: Lock) -> None:
    """Until the transaction ends; waits for whoever has it."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCKS, lock.value])


def try_to_take(cursor: Cursor, lock: Lock) -> bool:
    """Until the transaction ends; False where somebody else has it."""
    query = "SELECT pg_try_advisory_xact_lock(%s, %s)"
    return bool(cursor.execute(query, [_LOCKS, lock.value]).fetchall()[0][0])


VERSION_TABLE: Final = "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY)"
FIXED: Final = f"""
CREATE TABLE IF NOT EXISTS server_zone (name {TEXT} PRIMARY KEY);
CREATE TABLE IF NOT EXISTS source_offset (
    partition {TEXT} PRIMARY KEY, next_sequence BIGINT NOT NULL, delivered BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS source_dropped (
    partition {TEXT}, reason {TEXT}, records BIGINT NOT NULL, PRIMARY KEY (partition, reason));
CREATE TABLE IF NOT EXISTS parked_record (
    partition {TEXT}, sequence BIGINT, kind INTEGER, reason {TEXT}, payload BYTEA,
    PRIMARY KEY (partition, sequence));
{"".join(f"{one};" for model in LASTING for one in models.statements(model, model.name))}
"""


def install(
    cursor: Cursor,
    statements: Iterable[str],
    upgrade: Callable[[Cursor, int], None],
    zone: tzinfo,
) -> None:
    """Makes what is missing of the fixed tables, and columns of any that a stream has got since;
    what is there stays as it is, but for what `upgrade` does to the tables of an older version. A
    database without a zone is given this one."""
    take(cursor, Lock.SCHEMA)
    cursor.execute(VERSION_TABLE)
    version = check_version(cursor)
    for table, column in segments.lacking(columns(cursor)):  # before there are indexes of them
        cursor.execute(models.add(table, column))
    make(cursor, statements)
    cursor.execute(
        "INSERT INTO server_zone SELECT %s WHERE NOT EXISTS (SELECT FROM server_zone)",
        [name_of(zone)],
    )
    _check_zone(cursor, zone)
    cursor.execute(
        f"""INSERT INTO schema_version SELECT {VERSION}
        WHERE NOT EXISTS (SELECT FROM schema_version)"""
    )
    if version is not None and version < VERSION:
        upgrade(cursor, version)
        cursor.execute(f"UPDATE schema_version SET version = {VERSION}")


def make(cursor: Cursor, statements: Iterable[str]) -> None:
    """What is not there yet; alone (`Lock.SCHEMA`). A text may have several statements.

    PostgreSQL locks the table of an index before it finds that this is there already, and so would
    wait for who writes into it, who may wait for the table of an index before.
    """
    parts = [(one, _MADE.match(one)) for text in statements for one in text.split(";")]
    names = [made[2] for _, made in parts if made is not None]
    query = """SELECT relname FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s)"""
    there = {name for (name,) in cursor.execute(query, [names]).fetchall()}
    for one, made in parts:
        if one.strip() and (made is None or made[2] not in there):
            cursor.execute(one)


def check(cursor: Cursor, statements: Iterable[str], zone: tzinfo) -> None:
    """RetryableError naming a table, a column or the version that `install` has not made yet."""
    parts = (_MADE.match(one) for text in (VERSION_TABLE, *statements) for one in text.split(";"))
    named = {made[2] for made in parts if made is not None and made[1] == "TABLE"}
    if missing := sorted(named - present(cursor)):
        raise RetryableError(f"table:{missing[0]} does not exist")
    if (version := check_version(cursor)) is None or version < VERSION:
        raise RetryableError(f"the tables are of schema {version}, not yet of {VERSION}")
    if lacking := segments.lacking(columns(cursor)):
        table, column = lacking[0]
        raise RetryableError(f"{table} has no column {column.name} yet")
    _check_zone(cursor, zone)


def _check_zone(cursor: Cursor, zone: tzinfo) -> None:
    cursor.execute("SELECT name, extract(epoch FROM now())::bigint * 1000 FROM server_zone")
    for name, now_ms in cursor.fetchall():
        check_zone(name, zone, now_ms)


def check_version(cursor: Cursor) -> int | None:
    """The one there is; PermanentError for tables of a newer program."""
    cursor.execute("SELECT max(version) FROM schema_version")
    version: int | None = cursor.fetchall()[0][0]
    if version is not None and version > VERSION:
        raise PermanentError(
            f"the database has schema {version}, this program knows {VERSION}: "
            "start the newer program, or use another database"
        )
    return version


def present(cursor: Cursor) -> set[str]:
    """The tables there are, those of the days included."""
    cursor.execute(
        """SELECT relname FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"""
    )
    return {name for (name,) in cursor.fetchall()}


def columns(cursor: Cursor, count: int = COLUMNS_MAX) -> dict[str, tuple[str, ...]]:
    """The first columns of all tables there are, in order."""
    found: dict[str, tuple[str, ...]] = {}
    cursor.execute(
        """SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
        AND attnum BETWEEN 1 AND %s AND NOT attisdropped ORDER BY attnum""",
        [count],
    )
    for table, column in cursor.fetchall():
        found[table] = (*found.get(table, ()), column)
    return found


def day_tables(cursor: Cursor, name: str, between: tuple[int, int] | None = None) -> list[str]:
    """`<name>_<day>` of the days that a range of second buckets touches, or of all, in order.

    Their names lie side by side in an index: ":" is what follows the digits."""
    cursor.execute(
        """SELECT relname FROM pg_class WHERE relname >= %s::name AND relname < %s::name
        AND relnamespace = current_schema()::regnamespace AND relkind = 'r'""",
        [f"{name}_0", f"{name}_:"],
    )
    pattern = re.compile(f"{name}_([0-9]{{8}})")
    found = (pattern.fullmatch(table) for (table,) in cursor.fetchall())
    days = sorted((int(one[1]), one[0]) for one in found if one)
    first, last = (day_of(second // 100) for second in between or (0, SECOND_MAX))
    return [table for day, table in days if first <= day <= last]

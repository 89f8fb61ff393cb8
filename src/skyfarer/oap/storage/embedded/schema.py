"""Tables of the embedded storage.

Time series lie in one table a day (`metrics_service_20261115`, `segment_20261115`), so that data
expires by dropping whole tables. Names of such tables are built from our own names and an integer
alone; everything that came from outside is a bound parameter, but for the names of accumulators,
which are checked. What the tables of streams look like follows from their declarations (`models`);
those that are spelt out are this storage's own books.

Version 2 has the column `kind` in segments. A file of version 1 is given it when it is opened: all
its segments are of the one kind that there was. Version 3 has other metrics, in tables of the same
names: those of an older file are renamed, and stay until somebody drops them. Version 4 has the
tags of segments; older ones are found by none. Version 5 has lists in metrics where there were
MAPs (`tables`). Version 6 has signatures of tags (`signatures`). Logs and events are tables of days
that are made when there are any, and tags of logs are rows of a type that older programs pass over:
they need no version.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final, TypeVar

import duckdb

from skyfarer.oap.core.streams.catalog import LASTING
from skyfarer.oap.core.time_bucket import day_of, days_between
from skyfarer.oap.storage.embedded import inventory, models, signatures, tables

VERSION = 6
OLD = "old_v2_"
SECOND_MAX = 9999_12_31_23_59_59
VERSION_TABLE = "schema_version"
ZONE_TABLE = "server_zone"
V3_SEGMENT = 1
"""wire.rpc.Kind.SEGMENT, the only kind of version 1."""

DAYS_TRIED_MAX: Final = 31
COLUMNS_MAX: Final = 2**31 - 1
_Read = TypeVar("_Read")

log = logging.getLogger(__name__)

FIXED = f"""
CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY);
INSERT INTO schema_version SELECT {VERSION} WHERE NOT EXISTS (FROM schema_version);
CREATE TABLE IF NOT EXISTS server_zone (name VARCHAR PRIMARY KEY);
CREATE TABLE IF NOT EXISTS source_offset (
    partition VARCHAR PRIMARY KEY, next_sequence BIGINT NOT NULL, delivered BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS source_dropped (
    partition VARCHAR, reason VARCHAR, records BIGINT NOT NULL, PRIMARY KEY (partition, reason));
CREATE TABLE IF NOT EXISTS parked_record (
    partition VARCHAR, sequence BIGINT, kind INTEGER, reason VARCHAR, payload BLOB,
    PRIMARY KEY (partition, sequence));
{"".join(f"{models.create(one)};" for one in LASTING)}
{inventory.DDL}
"""


def present(cursor: duckdb.DuckDBPyConnection) -> set[str]:
    """The tables there are, those of the days included."""
    return {name for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


def columns(
    cursor: duckdb.DuckDBPyConnection, count: int = COLUMNS_MAX
) -> dict[str, tuple[str, ...]]:
    """The first columns of all tables there are, in order."""
    found: dict[str, tuple[str, ...]] = {}
    cursor.execute(
        """SELECT table_name, column_name FROM duckdb_columns()
        SEMI JOIN duckdb_tables() USING (database_name, schema_name, table_name)
        WHERE column_index <= ? ORDER BY column_index""",
        [count],
    )
    for table, column in cursor.fetchall():
        found[table] = (*found.get(table, ()), column)
    return found


def upgrade(cursor: duckdb.DuckDBPyConnection, version: int) -> None:
    """Brings the tables of days in a file of an older version up to date. But for the metrics that
    are rewritten, in one transaction; whatever ends it, the next start goes on with the rest."""
    if rewritten := tables.upgrade(cursor):
        log.info("%d columns of metrics were rewritten for schema %d", rewritten, VERSION)
    cursor.begin()
    there = sorted(present(cursor))
    for table in (name for name in there if version < 2 and _SEGMENTS.fullmatch(name)):
        cursor.execute(
            f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS kind INTEGER DEFAULT {V3_SEGMENT}"
        )
    for table in (name for name in there if _SEGMENTS.fullmatch(name)):
        cursor.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS tags VARCHAR[]")
        cursor.execute(
            f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {signatures.COLUMN} BIGINT "
            f"DEFAULT {signatures.UNKNOWN}"
        )
    old = [name for name in there if version < 3 and _OLD_METRICS.fullmatch(name)]
    for table in old:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {OLD}{table}")
    cursor.execute("UPDATE schema_version SET version = ?", [VERSION])
    cursor.commit()
    if old:
        log.warning(
            "metrics of the old schema are kept but no longer read: %d tables are now named %s…; "
            "drop them when they are not wanted",
            *(len(old), OLD),
        )


def day_tables(
    cursor: duckdb.DuckDBPyConnection, name: str, between: tuple[int, int] | None = None
) -> list[str]:
    """`<name>_<day>` of the days that a range of second buckets touches, or of all, in order."""
    pattern = re.compile(f"{name}_([0-9]{{8}})")
    found = (pattern.fullmatch(table) for table in present(cursor))
    days = sorted((int(one[1]), one[0]) for one in found if one)
    first, last = (day_of(second // 100) for second in between or (0, SECOND_MAX))
    return [table for day, table in days if first <= day <= last]


def of_days(
    cursor: duckdb.DuckDBPyConnection,
    name: str,
    between: tuple[int, int] | None,
    read: Callable[[Sequence[str]], _Read],
) -> _Read:
    """What is read of the tables that `day_tables` tells of, within a snapshot. Mostly those of all
    days are there, and to ask which ones takes longer the more tables there are. Where one is not,
    the snapshot begins anew."""
    if days := _days_tried(between):
        try:
            return read([f"{name}_{day:08d}" for day in days])
        except duckdb.CatalogException:  # it has ended the transaction
            cursor.rollback()
            cursor.begin()
    return read(day_tables(cursor, name, between))


def _days_tried(between: tuple[int, int] | None) -> list[int]:
    """None of a long time, or of one that no calendar has."""
    first, last = (day_of(second // 100) for second in between or (0, SECOND_MAX))
    try:
        dates = [date.fromisoformat(f"{day:08d}") for day in (first, last)]
    except ValueError:
        return []
    return days_between(first, last) if (dates[1] - dates[0]).days < DAYS_TRIED_MAX else []


_SEGMENTS = re.compile("segment_[0-9]{8}")
_OLD_METRICS = re.compile("metrics_(service|service_instance|endpoint)_[0-9]{8}")

"""Hours of a day that is over are put together.

Every batch brings the hour and the day of its minutes up to date, so that an hour comes to lie
behind its minutes, far from the next one: whoever ranks entities by their hours reads the ids of
all of them again for each (ADR 022). When a source's next day begins, the hours of the last one are
moved to the end of its table. Nothing depends on it: it is the same rows, found by the same
questions, and what comes late lies where it comes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

import duckdb

from skyfarer.oap.storage.embedded import schema

HOURS_MAX: Final = 100_000
"""Rows that are moved at once, while no batch is stored; more stay where they are."""
_DAY_DIGITS: Final = 8

log = logging.getLogger(__name__)


def ended(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Of the tables before, the newest of each source that has a newer one afterwards."""
    newer = _newest(after)
    return [f"{name}{day}" for name, day in _newest(before).items() if day < newer.get(name, day)]


def gather(cursor: duckdb.DuckDBPyConnection, table: str) -> int:
    """How many rows were moved, inside the caller's transaction; none of a table that is gone."""
    if table not in schema.present(cursor):
        return 0
    first = int(table[-_DAY_DIGITS:]) * 100
    hours = f"FROM {table} WHERE time_bucket BETWEEN {first} AND {first + 23}"
    ((count,),) = cursor.execute(f"SELECT count(*) {hours}").fetchall()
    if count > HOURS_MAX:
        log.info("%s has %d rows of hours, too many to be put together", table, count)
        return 0
    cursor.register("hours", cursor.sql(f"DELETE {hours} RETURNING *").to_arrow_table())
    cursor.execute(f"INSERT INTO {table} BY NAME FROM hours ORDER BY time_bucket")
    return int(count)


def _newest(tables: Iterable[str]) -> Mapping[str, str]:
    """Name → day; both texts."""
    days: dict[str, str] = {}
    for table in tables:
        name, day = table[:-_DAY_DIGITS], table[-_DAY_DIGITS:]
        days[name] = max(day, days.get(name, day))
    return days

"""Which tags there are to find segments by: one table a day, to complete what somebody types.

The tags of a segment itself are a column of it, a list: DuckDB reads that one column to find the
segments that have a tag, and writes no second row for each.
"""

from __future__ import annotations

import re
from typing import Final

import duckdb

from skyfarer.oap.core.time_bucket import day_of
from skyfarer.oap.core.traces import TAG_SEPARATOR
from skyfarer.oap.storage.embedded import schema

TAGS_A_DAY_MAX: Final = 100_000
"""Beyond it segments are still found by a tag; it is only no longer proposed."""
TRACE: Final = "TRACE"
_TABLES = re.compile("tag_autocomplete_([0-9]{8})")
_CUT = f"strpos(tag, '{TAG_SEPARATOR}')"


def store(cursor: duckdb.DuckDBPyConnection, day: int) -> None:
    """Those of the `incoming` segments of that day."""
    table = f"tag_autocomplete_{day:08d}"
    cursor.execute(
        f"""CREATE TABLE IF NOT EXISTS {table} (
        tag_type VARCHAR, tag_key VARCHAR, tag_value VARCHAR, time_bucket BIGINT NOT NULL,
        PRIMARY KEY (tag_type, tag_key, tag_value))"""
    )
    cursor.execute(
        f"""INSERT INTO {table}
        WITH told AS (
            SELECT DISTINCT unnest(tags) AS tag FROM incoming WHERE bucket // 10000 = $day),
        pairs AS (SELECT '{TRACE}' AS tag_type, tag[:{_CUT} - 1] AS tag_key,
            tag[{_CUT} + 1:] AS tag_value FROM told)
        SELECT *, $day::BIGINT * 10000
        FROM pairs ANTI JOIN {table} USING (tag_type, tag_key, tag_value)
        LIMIT greatest({TAGS_A_DAY_MAX} - (SELECT count(*) FROM {table}), 0)""",
        {"day": day},
    )


def keys(cursor: duckdb.DuckDBPyConnection, between: tuple[int, int], limit: int) -> list[str]:
    return _found(cursor, "tag_key", "true", between, {"limit": limit})


def values(
    cursor: duckdb.DuckDBPyConnection, key: str, between: tuple[int, int], limit: int
) -> list[str]:
    asked = {"limit": limit, "key": key}
    return _found(cursor, "tag_value", "tag_key = $key", between, asked)


def _found(
    cursor: duckdb.DuckDBPyConnection,
    column: str,
    test: str,
    between: tuple[int, int],
    asked: dict[str, object],
) -> list[str]:
    first, last = (day_of(second // 100) for second in between)
    days = [
        f"SELECT {column} AS found FROM {name} WHERE tag_type = '{TRACE}' AND {test}"
        for name in schema.present(cursor)
        if (day := _TABLES.fullmatch(name)) and first <= int(day[1]) <= last
    ]
    if not days:
        return []
    query = f"SELECT DISTINCT found FROM ({' UNION ALL '.join(days)}) ORDER BY found LIMIT $limit"
    return [found for (found,) in cursor.execute(query, asked).fetchall()]

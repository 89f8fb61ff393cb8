"""Which tags there are to find segments and logs by: one table a day, to complete what is typed.

The tags of a segment or log itself are a column of it, a list: DuckDB reads that one column to find
those that have a tag, and writes no second row for each.
"""

from __future__ import annotations

from typing import Final

import duckdb

from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.records import TAG_AUTOCOMPLETE
from skyfarer.oap.core.traces import TAG_SEPARATOR
from skyfarer.oap.storage.embedded import models, schema

TAGS_A_DAY_MAX: Final = 100_000
"""Of one type. Beyond it rows are still found by a tag; it is only no longer proposed."""
NAME: Final = TAG_AUTOCOMPLETE.name
_MODEL: Final = model(TAG_AUTOCOMPLETE)
_CUT = f"strpos(tag, '{TAG_SEPARATOR}')"


def store(cursor: duckdb.DuckDBPyConnection, tag_type: str, day: int) -> None:
    """Those of the `incoming` rows of that day."""
    table = models.make(cursor, _MODEL, day)
    cursor.execute(
        f"""INSERT INTO {table}
        WITH told AS (
            SELECT DISTINCT unnest(tags) AS tag FROM incoming WHERE bucket // 10000 = $day),
        pairs AS (SELECT $type::VARCHAR AS tag_type, tag[:{_CUT} - 1] AS tag_key,
            tag[{_CUT} + 1:] AS tag_value FROM told)
        SELECT *, $day::BIGINT * 10000
        FROM pairs ANTI JOIN {table} USING (tag_type, tag_key, tag_value)
        LIMIT greatest(
            {TAGS_A_DAY_MAX} - (SELECT count(*) FROM {table} WHERE tag_type = $type), 0)""",
        {"type": tag_type, "day": day},
    )


def keys(
    cursor: duckdb.DuckDBPyConnection, tag_type: str, between: tuple[int, int], limit: int
) -> list[str]:
    asked = {"type": tag_type, "limit": limit}
    return _found(cursor, "tag_key", "true", between, asked)


def values(
    cursor: duckdb.DuckDBPyConnection, tag_type: str, key: str, between: tuple[int, int], limit: int
) -> list[str]:
    asked = {"type": tag_type, "limit": limit, "key": key}
    return _found(cursor, "tag_value", "tag_key = $key", between, asked)


def _found(
    cursor: duckdb.DuckDBPyConnection,
    column: str,
    test: str,
    between: tuple[int, int],
    asked: dict[str, object],
) -> list[str]:
    days = [
        f"SELECT {column} AS found FROM {table} WHERE tag_type = $type AND {test}"
        for table in schema.day_tables(cursor, NAME, between)
    ]
    if not days:
        return []
    query = f"SELECT DISTINCT found FROM ({' UNION ALL '.join(days)}) ORDER BY found LIMIT $limit"
    return [found for (found,) in cursor.execute(query, asked).fetchall()]

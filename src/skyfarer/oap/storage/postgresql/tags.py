"""Which tags there are to find segments and logs by: one table a day, to complete what is typed.

The tags of a segment or log itself are a column of it, a list with a GIN index. One row a tag in a
table of their own would cost three times as much to write, ten times the space, and could give
pages in the order of time only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.records import TAG_AUTOCOMPLETE
from skyfarer.oap.core.traces import TAG_SEPARATOR
from skyfarer.oap.storage.postgresql import copying, models, schema
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.searching import Search

TAGS_A_DAY_MAX: Final = 100_000
"""Of one type. Beyond it rows are still found by a tag; it is only no longer proposed."""
NAME: Final = TAG_AUTOCOMPLETE.name
_MODEL: Final = model(TAG_AUTOCOMPLETE)
_ROW: Final = ", ".join(column.name for column in TAG_AUTOCOMPLETE.key)


def tables(day: int) -> dict[str, list[str]]:
    return models.of_day(_MODEL, day)


def store(cursor: Cursor, tag_type: str, rows: pa.Table, day: int) -> None:
    """The tags of the rows. Nearly always all of them are there, and nothing has to be counted;
    otherwise it is done alone."""
    tags = copying.prepared(pa.table({"tag": pc.list_flatten(rows["tags"])}))["tag"]
    found = sorted(tag for tag in pc.unique(tags).to_pylist() if tag is not None)
    told = {"type": tag_type, "day": day, "tags": found, "rows_max": TAGS_A_DAY_MAX}
    table = _MODEL.of_day(day)
    fresh = cursor.execute(f"SELECT tag FROM {_FRESH.format(table=table)}", told).fetchall()
    if not fresh:
        return
    schema.take(cursor, schema.Lock.MERGING)
    told["tags"] = [tag for (tag,) in fresh]
    cursor.execute(
        f"""INSERT INTO {table}
        SELECT tag_type, tag_key, tag_value, %(day)s::bigint * 10000
        FROM {_FRESH.format(table=table)} ORDER BY {_ROW} LIMIT greatest(%(rows_max)s - (
            SELECT count(*) FROM {table} WHERE tag_type = %(type)s), 0)""",
        told,
    )


_FRESH: Final = f"""(
    SELECT tag, %(type)s::text AS tag_type, split_part(tag, '{TAG_SEPARATOR}', 1) AS tag_key,
        substr(tag, strpos(tag, '{TAG_SEPARATOR}') + 1) AS tag_value
    FROM unnest(%(tags)s::text[]) AS tag) AS told
    WHERE NOT EXISTS (SELECT FROM {{table}} AS here
        WHERE (here.tag_type, here.tag_key, here.tag_value)
            = (told.tag_type, told.tag_key, told.tag_value))"""


def keys(search: Search, tag_type: str, between: tuple[int, int], limit: int) -> list[str]:
    return _found(search, "tag_key", "true", between, {"type": tag_type, "limit": limit})


def values(
    search: Search, tag_type: str, key: str, between: tuple[int, int], limit: int
) -> list[str]:
    asked = {"type": tag_type, "limit": limit, "key": key}
    return _found(search, "tag_value", "tag_key = %(key)s", between, asked)


def _found(
    search: Search,
    column: str,
    test: str,
    between: tuple[int, int],
    asked: Mapping[str, object],
) -> list[str]:
    days = [
        f"SELECT {column} AS found FROM {table} WHERE tag_type = %(type)s AND {test}"
        for table in schema.day_tables(search.cursor, NAME, between)
    ]
    if not days:
        return []
    query = f"""SELECT DISTINCT found FROM ({" UNION ALL ".join(days)}) AS tags
        ORDER BY found LIMIT %(limit)s"""
    return [found for (found,) in search.rows(query, asked)]

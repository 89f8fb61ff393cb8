"""Metrics of a range of buckets, over the tables of its days: merged rows and appended ones.

One look at the catalog says which of the wanted columns each table has, and one statement reads all
days that are alike in that, which nearly always are all of them: a range of a week costs as many
ways to the server as that of a day.

    entity_id, time_bucket, batch, <accumulator>, …, "<table> #"

Rows of batch 0 are merged ones, the others were appended; their buckets are of the precision asked
for. "<table> #" is the bound of a table, null for merged rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skyfarer.oap.core.storage import KEYS_MAX, Merge
from skyfarer.oap.core.time_bucket import PRECISIONS, days_of
from skyfarer.oap.storage.postgresql.appended import BATCH, appended_to
from skyfarer.oap.storage.postgresql.columns import BOUND, KEYS, MERGES, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.metrics import table_of

_MINUTE_DIGITS: Final = 12
_CATALOG: Final = r"""SELECT relname, attname, format_type(atttypid, NULL)
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relname = ANY(string_to_array(%s, E'\n')::name[])
    AND relnamespace = current_schema()::regnamespace
    AND relkind = 'r' AND attname = ANY(string_to_array(%s, E'\n')::name[]) AND NOT attisdropped"""
_Catalog = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Range:
    """Of buckets of one precision; ValueError for two of different ones."""

    start: int
    end: int

    @property
    def digits(self) -> int:
        return len(str(self.start))

    @property
    def minutes(self) -> int:
        """What a minute is divided by to give a bucket of this precision."""
        return PRECISIONS[(_MINUTE_DIGITS - self.digits) // 2]

    def asked(self) -> dict[str, int]:
        """The values of `Days.query`."""
        first, last = self.start * self.minutes, (self.end + 1) * self.minutes - 1
        return {"start": self.start, "end": self.end, "first_minute": first, "last_minute": last}


@dataclass(frozen=True)
class Days:
    """Tables of days that have the same of the wanted columns. A plan of before may have left some
    that nothing is `appended_columns` of."""

    range: Range
    columns: Sequence[Column]
    appended_columns: frozenset[Column]
    merged: Sequence[str]
    appended: Sequence[str]

    def types(self) -> dict[str, str]:
        """Of what `query` gives, in SQL."""
        found = {"entity_id": "text", "time_bucket": "bigint", BATCH: "bigint"}
        found |= {column.name: column.type for column in self.columns}
        return found | {f"{one.name}{BOUND}": "integer" for one in self.columns if one.is_table}

    def query(self, where: str, through: Mapping[str, int] | None = None) -> str:
        """`where` is a further test, of `entity_id`. Of tables in `through` only merged rows of
        later buckets. One table is asked in any case: it names the columns."""
        known = through or {}
        asked = [one for one in self.merged if known.get(one, 0) < self.range.end]
        later = {table: f"time_bucket > {last} AND" for table, last in known.items()}
        plain = "".join(f', "{column.name}"' for column in self.columns)
        bounds = [one for one in self.columns if one.is_table]
        none = "".join(f', NULL::integer AS "{one.name}{BOUND}"' for one in bounds)
        told = "".join(self._told(one, one.settled, one.type) for one in self.columns)
        told += "".join(self._bound(one) for one in bounds)
        parts = [
            f"""SELECT entity_id, time_bucket, 0::bigint AS {BATCH}{plain}{none} FROM {table}
            WHERE time_bucket BETWEEN %(start)s AND %(end)s AND {later.get(table, "")} {where}"""
            for table in asked or self.merged[:1]
        ]
        parts += [
            f"""SELECT entity_id, time_bucket / {self.range.minutes}, {BATCH}{told} FROM {table}
            WHERE time_bucket BETWEEN %(first_minute)s AND %(last_minute)s AND {where}"""
            for table in self.appended
        ]
        return " UNION ALL ".join(parts)

    def _bound(self, column: Column) -> str:
        """One that is not told is the usual one."""
        told = self._told(column, f"{column.name}{BOUND}", "integer").removeprefix(", ")
        return f", coalesce({told}, {KEYS_MAX})"

    def _told(self, column: Column, name: str, of_type: str) -> str:
        return f', "{name}"' if column in self.appended_columns else f", NULL::{of_type}"


def days_with(
    cursor: Cursor, source: str, columns: Sequence[str], start_bucket: int, end_bucket: int
) -> Iterator[Days]:
    """ValueError for buckets that are not of one precision, KeyError for what is no source."""
    days = days_of(start_bucket, end_bucket)
    tables = [table_of(source, day) for day in days]
    there = _catalog(cursor, tables, columns)
    alike: dict[tuple[tuple[Column, ...], frozenset[Column]], list[str]] = {}
    for table in (table for table in tables if table in there):
        beside = there.get(appended_to(table), {})
        found = tuple(_columns(there[table], beside, columns))
        shape = found, frozenset(one for one in found if one.settled in beside)
        alike.setdefault(shape, []).append(table)
    for shape, merged in alike.items():
        appended = [appended_to(table) for table in merged if appended_to(table) in there]
        yield Days(Range(start_bucket, end_bucket), *shape, merged, appended)


def _catalog(cursor: Cursor, tables: Sequence[str], columns: Sequence[str]) -> _Catalog:
    names = [f"{name}{merge}" for name in columns for merge in MERGES.values()]
    wanted = [*tables, *map(appended_to, tables)], [KEYS[0], *columns, *names]
    lists = ["\n".join(some) for some in wanted]  # a text is sooner sent than a list
    found: _Catalog = {}
    for table, column, of_type in cursor.execute(_CATALOG, lists).fetchall():
        found.setdefault(table, {})[column] = of_type
    return found


def _columns(
    merged: Mapping[str, str], appended: Mapping[str, str], wanted: Sequence[str]
) -> Iterator[Column]:
    """Those that are there; one that no batch has appended merges as nobody asks."""
    for name in (name for name in wanted if name in merged):
        named = ((merge, f"{name}{suffix}") for merge, suffix in MERGES.items())
        merges = (merge for merge, one in named if one in merged or one in appended)
        yield Column(name, merged[name], next(merges, Merge.SUM))

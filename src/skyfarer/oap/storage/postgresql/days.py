"""Metrics of a range of buckets, over the tables of its days: merged rows and appended ones.

One look at the catalog says which of the wanted columns each table has. Then one statement reads
the merged rows, and another the bundles of appended ones, of all days that are alike in that, which
nearly always are all of them: a range of a week costs as many ways to the server as that of a day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.core.time_bucket import PRECISIONS, days_of
from skyfarer.oap.storage.postgresql import appended
from skyfarer.oap.storage.postgresql.appended import appended_to
from skyfarer.oap.storage.postgresql.columns import KEYS, MERGES, Column
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

    @property
    def minutes_between(self) -> tuple[int, int]:
        """The least and the greatest number of one that is in it."""
        return self.start * self.minutes, (self.end + 1) * self.minutes - 1

    def asked(self) -> dict[str, int]:
        """The values of `Days.query` and `Days.bundles`."""
        first, last = self.minutes_between
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
        found = {"entity_id": "text", "time_bucket": "bigint"}
        return found | {column.name: column.type for column in self.columns}

    def query(self, where: str, through: Mapping[str, int] | None = None) -> str:
        """Merged rows; `where` is a further test, of `entity_id`. Of tables in `through` only those
        of later buckets. One table is asked in any case: it names the columns."""
        known = through or {}
        asked = [one for one in self.merged if known.get(one, 0) < self.range.end]
        later = {table: f"time_bucket > {last} AND" for table, last in known.items()}
        plain = "".join(f', "{column.name}"' for column in self.columns)
        return " UNION ALL ".join(
            f"""SELECT entity_id, time_bucket{plain} FROM {table}
            WHERE time_bucket BETWEEN %(start)s AND %(end)s AND {later.get(table, "")} {where}"""
            for table in asked or self.merged[:1]
        )

    def bundles(self, where: str = "true") -> str:
        """Of appended rows, some of which may be of other minutes; `where` is a further test, of
        the text that has all ids of a bundle. Empty where there is no table."""
        asked = f"{appended.WITHIN} AND {where}"
        there = self.appended_columns
        return " UNION ALL ".join(
            appended.query(table, self.columns, there, asked) for table in self.appended
        )


def days_with(
    cursor: Cursor, source: str, columns: Sequence[str], start_bucket: int, end_bucket: int
) -> Iterator[Days]:
    """ValueError for buckets that are not of one precision, KeyError for what is no source."""
    days = days_of(start_bucket, end_bucket)
    tables = [table_of(source, day) for day in days]
    there = _catalog(cursor, tables, columns)
    alike: dict[tuple[tuple[Column, ...], frozenset[Column]], list[str]] = {}
    for table in (table for table in tables if table in there):
        others = there.get(appended_to(table), {})
        found = tuple(_columns(there[table], others, columns))
        shape = found, frozenset(one for one in found if one.settled in others)
        alike.setdefault(shape, []).append(table)
    for shape, merged in alike.items():
        beside = [appended_to(table) for table in merged if appended_to(table) in there]
        yield Days(Range(start_bucket, end_bucket), *shape, merged, beside)


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

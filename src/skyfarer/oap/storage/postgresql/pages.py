"""Pages of rows out of many days, and the bytes that belong to them.

Each day is a table with indices of its own. In the order of time a page is collected day by day,
from the end that its order begins with. Once it is full, the further days are only asked for what
comes before the page's last row, and their indices say at once that there is nothing: all in one
statement, since its way there and back takes longer than most answers. So the days need not follow
each other without overlap, which they do not where clocks go back at midnight.

In any other order every day has to be asked, and all are asked in one statement. Its rows are
those of all days, tested and sorted from outside: only so does the server take them from the days'
indices side by side, in their order, and end with the page's last row. A test within each day would
have it read and sort all that fit. The order of an index is its first key alone; rows that are
equal in it to the page's last one are taken too, and sorted by the other keys after that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple

from skyfarer.oap.storage.postgresql.searching import Row, Search


@dataclass(frozen=True)
class Listing:
    """`columns` of rows, sorted by `keys`: a column, and whether the largest come first. The first
    key has an index, and is never null; `by_day` says that days come in its order. `tested` are
    further columns that tests may name."""

    columns: Sequence[str]
    keys: Sequence[tuple[str, bool]]
    by_day: bool = True
    tested: Sequence[str] = ()

    def page(
        self,
        search: Search,
        days: Mapping[str, Sequence[str]],
        values: Mapping[str, object],
        rows_max: int,
    ) -> list[Row]:
        """The first rows, each with the name of its table at its end. `days` are tables with the
        tests of their rows; the page is soonest full when they come in the order of the key."""
        if rows_max <= 0 or not days:
            return []
        if not self.by_day:
            return search.rows(self._at_once(days), {**values, "rows_max": rows_max})
        found, left, key = list[Row](), list(days), self.keys[0][0]
        while left:
            full = len(found) >= rows_max
            size = len(left) if full else 1
            some, left = {table: days[table] for table in left[:size]}, left[size:]
            edge = found[-1][self.columns.index(key)] if full else None
            bound = {"edge": edge, "rows_max": rows_max}
            found += search.rows(self._statement(some, full), {**values, **bound})
            self._sort(found)
            del found[rows_max:]
        return found

    def _at_once(self, days: Mapping[str, Sequence[str]]) -> str:
        """All tests of any day are true of what fits in the others."""
        columns = ", ".join(self.columns)
        rows = " UNION ALL ".join(
            f"SELECT {', '.join([*self.columns, *self.tested])}, '{table}' AS day FROM {table}"
            for table in days
        )
        tests = dict.fromkeys(test for some in days.values() for test in some)
        return f"""SELECT * FROM (
            SELECT {columns}, day FROM ({rows}) AS days WHERE {" AND ".join(tests)}
            ORDER BY {_order(self.keys[:1])} FETCH FIRST %(rows_max)s ROWS WITH TIES) AS first
        ORDER BY {_order(self.keys)} LIMIT %(rows_max)s"""

    def _statement(self, days: Mapping[str, Sequence[str]], full: bool) -> str:
        key, descending = self.keys[0]
        edge = [f"{key} {'>=' if descending else '<='} %(edge)s"] if full else []
        end = f"ORDER BY {_order(self.keys)} LIMIT %(rows_max)s"
        return " UNION ALL ".join(
            f"""(SELECT {", ".join(self.columns)}, '{table}' FROM {table}
            WHERE {" AND ".join([*tests, *edge])} {end})"""
            for table, tests in days.items()
        )

    def _sort(self, rows: list[Row]) -> None:
        """Python and PostgreSQL agree: texts are sorted by their characters' numbers in both."""
        for column, descending in reversed(self.keys):
            rows.sort(key=itemgetter(self.columns.index(column)), reverse=descending)


def _order(keys: Sequence[tuple[str, bool]]) -> str:
    return ", ".join(f"{column} {'DESC' if down else 'ASC'}" for column, down in keys)


class Place(NamedTuple):
    """Where bytes are: the key of their row in a table, and how many they are."""

    table: str
    key: int | str
    size: int


def blobs(
    search: Search, statement: str, places: Sequence[Place], bytes_max: int
) -> Iterator[bytes | None]:
    """One a place, in their order; None from the first for which the bytes do not suffice.

    `statement` selects keys and bytes of `{table}` by `%(keys)s`. Only bytes that are given out
    are fetched, so `bytes_max` bounds the memory too.
    """
    sums = accumulate(place.size for place in places)
    wanted = [place for place, used in zip(places, sums, strict=True) if used <= bytes_max]
    found = dict[tuple[str, int | str], bytes]()
    for table, members in groupby(sorted(wanted), key=lambda place: place.table):
        keys = [place.key for place in members]
        rows = search.rows(statement.format(table=table), {"keys": keys}, prepare=True)
        found.update({(table, key): data for key, data in rows})
    for place in places:
        yield found.get((place.table, place.key))

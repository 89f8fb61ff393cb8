"""Pages of rows out of many days, and the bytes that belong to them.

Each day is a table with indices of its own, so a page is collected day by day, from the end that
its order begins with. Once it is full, the further days are only asked for what comes before the
page's last row, and their indices say at once that there is nothing. So the days need not follow
each other without overlap, which they do not where clocks go back at midnight.

Days that have to be asked anyway are asked in one statement: its way there and back takes longer
than most answers. Where the order is not that of time they are asked in groups, each twice as large
as all before it, since what is found makes the rest of the search shorter.
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
    key has an index, and is never null; `by_day` says that days come in its order."""

    columns: Sequence[str]
    keys: Sequence[tuple[str, bool]]
    by_day: bool = True

    def page(
        self,
        search: Search,
        days: Mapping[str, Sequence[str]],
        values: Mapping[str, object],
        rows_max: int,
    ) -> list[Row]:
        """The first rows, each with the name of its table at its end. `days` are tables with the
        tests of their rows; the page is soonest full when they come in the order of the key."""
        found, left, key = list[Row](), list(days) if rows_max > 0 else [], self.keys[0][0]
        while left:
            full = len(found) >= rows_max
            size = self._together(len(days) - len(left), len(left), full)
            some, left = {table: days[table] for table in left[:size]}, left[size:]
            edge = found[-1][self.columns.index(key)] if full else None
            bound = {"edge": edge, "rows_max": rows_max}
            found += search.rows(self._statement(some, full), {**values, **bound})
            self._sort(found)
            del found[rows_max:]
        return found

    def _together(self, asked: int, left: int, full: bool) -> int:
        if self.by_day:
            return left if full else 1
        return max(asked, 1)

    def _statement(self, days: Mapping[str, Sequence[str]], full: bool) -> str:
        key, descending = self.keys[0]
        edge = [f"{key} {'>=' if descending else '<='} %(edge)s"] if full else []
        order = (f"{column} {'DESC' if down else 'ASC'}" for column, down in self.keys)
        end = f"ORDER BY {', '.join(order)} LIMIT %(rows_max)s"
        return " UNION ALL ".join(
            f"""(SELECT {", ".join(self.columns)}, '{table}' FROM {table}
            WHERE {" AND ".join([*tests, *edge])} {end})"""
            for table, tests in days.items()
        )

    def _sort(self, rows: list[Row]) -> None:
        """Python and PostgreSQL agree: texts are sorted by their characters' numbers in both."""
        for column, descending in reversed(self.keys):
            rows.sort(key=itemgetter(self.columns.index(column)), reverse=descending)


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

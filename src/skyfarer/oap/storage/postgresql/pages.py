"""Pages of rows out of many days, and the bytes that belong to them.

Each day is a table with indices of its own, so a page is collected day by day, from the end that
its order begins with. Once it is full, a further day is only asked for what comes before the page's
last row, and its index says at once that there is nothing. So the days need not follow each other
without overlap, which they do not where clocks go back at midnight.
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
    key has an index, and is never null."""

    columns: Sequence[str]
    keys: Sequence[tuple[str, bool]]

    def page(
        self,
        search: Search,
        tables: Sequence[str],
        tests: Sequence[str],
        values: Mapping[str, object],
        rows_max: int,
    ) -> list[Row]:
        """The first rows, each with the name of its table at its end. The page is soonest full
        when the tables come in the order of the first key."""
        found, first_key = list[Row](), self.columns.index(self.keys[0][0])
        for table in tables if rows_max > 0 else ():
            full = len(found) >= rows_max
            bound = {"edge": found[-1][first_key] if full else None, "rows_max": rows_max}
            found += search.rows(self._statement(table, tests, full), {**values, **bound})
            self._sort(found)
            del found[rows_max:]
        return found

    def _statement(self, table: str, tests: Sequence[str], full: bool) -> str:
        key, descending = self.keys[0]
        if full:
            tests = [*tests, f"{key} {'>=' if descending else '<='} %(edge)s"]
        order = (f"{column} {'DESC' if down else 'ASC'}" for column, down in self.keys)
        return f"""SELECT {", ".join(self.columns)}, '{table}' FROM {table}
            WHERE {" AND ".join(tests)} ORDER BY {", ".join(order)} LIMIT %(rows_max)s"""

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

"""Pages of rows out of many days: found by what they are sorted by, and then fetched.

A search reads many rows and gives out few, and DuckDB reads columns: a page's rows are chosen with
the columns that are asked about and the one that sorts, and only theirs are fetched from the others
(ADR 022). Ids break ties, and are the dearest column of all: they are read for the rows that may be
in the page, and for all only where more rows than SPARE have the key of its last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import duckdb

from skyfarer.oap.storage.embedded.searching import Place

Row = tuple[Any, ...]
SPARE: Final = 32
"""Rows beyond a page that are found with it, in case they tie with its last one."""


class Candidate(NamedTuple):
    """A row that may be in the page."""

    key: int
    place: Place


def candidates(
    cursor: duckdb.DuckDBPyConnection,
    days: Mapping[str, str],
    values: Mapping[str, object],
    sorting: tuple[str, str],
    rows_max: int,
    indexed: bool,
) -> list[Candidate]:
    """The first rows by key, the greatest first, and then by id; more of them where keys tie.

    `days` are tables with the tests of their rows; `sorting` are the key, and the id that breaks
    ties. Where an index finds the rows (`indexed`), they are sorted afterwards: DuckDB uses none
    below a sort with a limit.
    """
    key, tie = sorting
    found = _sorted(cursor, days, values, (key,), rows_max + SPARE, indexed)
    if len(found) == rows_max + SPARE and found[-1].key == found[rows_max - 1].key:
        found = _sorted(cursor, days, values, (key, tie), rows_max, indexed)
    return leading(found, rows_max)


def leading(found: Iterable[Candidate], rows_max: int) -> list[Candidate]:
    """The first, with all that tie with the last of them."""
    ordered = sorted(found, key=lambda one: -one.key)
    if len(ordered) <= rows_max:
        return ordered
    return [one for one in ordered if one.key >= ordered[rows_max - 1].key]


def fetched(
    cursor: duckdb.DuckDBPyConnection,
    columns: str,
    places: Sequence[Place],
    tests: Sequence[str] = (),
    values: Mapping[str, object] = MappingProxyType({}),
) -> list[Row]:
    """The columns of these rows that pass the tests, in no order."""
    if not places:
        return []
    rows: dict[str, list[int]] = {}
    for table, row in places:
        rows.setdefault(table, []).append(row)
    passing = "".join(f" AND {test}" for test in tests)
    tables = (
        f"SELECT {columns} FROM {table} WHERE rowid IN (SELECT unnest($rows_{number})){passing}"
        for number, table in enumerate(rows)
    )
    bound = {f"rows_{number}": some for number, some in enumerate(rows.values())}
    return cursor.execute(" UNION ALL ".join(tables), {**bound, **values}).fetchall()


def _sorted(
    cursor: duckdb.DuckDBPyConnection,
    days: Mapping[str, str],
    values: Mapping[str, object],
    keys: tuple[str, ...],
    limit: int,
    indexed: bool,
) -> list[Candidate]:
    tables = list(days)
    selected = (
        f"SELECT {', '.join(keys)}, {number} AS day, rowid AS row FROM {table} WHERE {days[table]}"
        for number, table in enumerate(tables)
    )
    alone = "MATERIALIZED" if indexed else "NOT MATERIALIZED"
    rows = cursor.execute(
        f"""WITH found AS {alone} ({" UNION ALL ".join(selected)})
        SELECT {keys[0]}, day, row FROM found
        ORDER BY {keys[0]} DESC{"".join(f", {tie}" for tie in keys[1:])} LIMIT $limit""",
        {**values, "limit": limit},
    )
    return [Candidate(key, Place(tables[day], row)) for key, day, row in rows.fetchall()]

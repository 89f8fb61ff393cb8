"""Columns of metric rows: how each accumulator is stored, and how it takes in another value.

              merged (`metrics`)                       appended (`appended`)
    number    "x" BIGINT or DOUBLE PRECISION           "x +" BYTEA (`bundles`)
    table     "x" TEXT (`tables`), "x +" INTEGER       "x +" BYTEA, "x #" INTEGER

`+` is a sum; in its place it may be `>` for the greatest or `<` for the least: a reader, who is
told nothing but "x", learns from the name how values are put together. "x #" is the bound of a
table's keys, null for KEYS_MAX.

A merged table takes in another by having its text appended: one key may stand in it several times,
and who reads it puts them together. Its second column has the length of the
text when it was put together last; when it has grown to more than twice that, and ROOM, it is done
again (`settling`). So what is taken in is paid for, not what is there: to take a table apart
and to group it in SQL costs thirty times as much. Up to its bound nothing is lost by waiting; where
there may be more keys, nobody waits.

Sums of 64-bit numbers wrap around, as Java's do, and those of doubles become infinite. PostgreSQL
refuses both, and to look for it in every row costs as much as all the rest: only rows that were
refused are merged `careful`ly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.core.storage import COLUMN_NAME, KEYS_MAX, Merge
from skyfarer.oap.storage.postgresql.copying import COLLATED
from skyfarer.oap.storage.postgresql.tables import ENTRY_BYTES_MIN

KEYS: Final = ("entity_id", "time_bucket")
MERGES: Final = {Merge.SUM: " +", Merge.MAX: " >", Merge.MIN: " <"}
BOUND: Final = " #"
"""What is added to the names of columns: short, since a name has 63 bytes and a plan uses 60."""
ROOM: Final = 512
SPREAD: Final = 255
"""Both in bytes. Rows that grow alike are not all put together by the same batch."""
_TAKEN: Final = frozenset((*KEYS, *ENTITY_COLUMNS, "minute", "row", "batch"))
_TABLE, _LONG, _DOUBLE = "text", "bigint", "double precision"
BUNDLED: Final = "bytea"
_NAME_BYTES_MAX: Final = 63 - len(BOUND)
_BY_SUFFIX: Final = {suffix: merge for merge, suffix in MERGES.items()}
_LEAST: Final = "(-9223372036854775808)"
_GREATEST: Final = "9223372036854775807"
_GREATEST_DOUBLE: Final = "1.7976931348623157e308::float8"


@dataclass(frozen=True)
class Column:
    """`type` as PostgreSQL spells it; `keys_max` is a table's bound."""

    name: str
    type: str
    merge: Merge
    keys_max: int = KEYS_MAX

    @property
    def is_table(self) -> bool:
        return self.type == _TABLE

    @property
    def is_bounded(self) -> bool:
        """More narrowly than tables usually are."""
        return self.is_table and self.keys_max != KEYS_MAX

    @property
    def settled(self) -> str:
        """A table's second column; the first where batches append."""
        return f"{self.name}{MERGES[self.merge]}"

    def declared(self) -> dict[str, str]:
        """The columns it is, with their types."""
        if not self.is_table:
            return {self.name: self.type}
        return {self.name: self.type, self.settled: "integer"}

    def appended(self) -> dict[str, str]:
        """The columns it is where batches append, with their types."""
        own = {self.settled: BUNDLED}
        return {**own, f"{self.name}{BOUND}": "integer"} if self.is_table else own

    def brought(self) -> dict[str, str]:
        """The columns it is, with where they are among the rows that a batch has brought."""
        own = {self.name: f'"{self.name}"'}
        return {**own, self.settled: f'octet_length("{self.name}")'} if self.is_table else own

    def taking(self, careful: bool) -> str:
        """The assignments of a row that takes in the `excluded` one."""
        if self.is_table:
            name, settled = f'"{self.name}"', f'"{self.settled}"'
            return (
                f"{name} = nullif(concat(t.{name}, excluded.{name}), ''),"
                f" {settled} = coalesce(t.{settled}, excluded.{settled})"
            )
        stored, new = f't."{self.name}"', f'excluded."{self.name}"'
        if self.merge is not Merge.SUM:
            chosen = "greatest" if self.merge is Merge.MAX else "least"
            return f'"{self.name}" = {chosen}({stored}, {new})'
        total = f"{stored} + {new}"
        if careful:
            total = (_wrapping if self.type == _LONG else _infinite)(stored, new)
        return f'"{self.name}" = coalesce({total}, {stored}, {new})'

    def too_long(self) -> str:
        """Of a table: whether it must be put together."""
        keys = f"{ENTRY_BYTES_MIN * self.keys_max}"
        grown = f'{ROOM} + 2 * t."{self.settled}" + (hashtext(t.entity_id) & {SPREAD})'
        return f'octet_length(t."{self.name}") > least({keys}, {grown})'


def _wrapping(stored: str, new: str) -> str:
    return f"""CASE WHEN {new} > 0 AND {stored} > {_GREATEST} - {new}
            THEN ({stored} + {_LEAST}) + ({new} + {_LEAST})
        WHEN {new} < 0 AND {stored} < {_LEAST} - {new}
            THEN ({stored} - {_LEAST}) + ({new} - {_LEAST})
        ELSE {stored} + {new} END"""


def _infinite(stored: str, new: str) -> str:
    return f"""CASE WHEN {new} > 0 AND {new} < 'Infinity' AND {stored} < 'Infinity'
            AND {stored} > {_GREATEST_DOUBLE} - {new} THEN 'Infinity'
        WHEN {new} < 0 AND {new} > '-Infinity' AND {stored} > '-Infinity'
            AND {stored} < -{_GREATEST_DOUBLE} - {new} THEN '-Infinity'
        ELSE {stored} + {new} END"""


def columns_of(
    rows: pa.Table, merges: Mapping[str, Merge], bounds: Mapping[str, int]
) -> list[Column]:
    """PermanentError for one that cannot be stored."""
    return [
        Column(name, _type(rows, name), merge, bounds.get(name, KEYS_MAX))
        for name, merge in merges.items()
    ]


def _type(rows: pa.Table, name: str) -> str:
    found = rows.schema.field(name).type
    if COLUMN_NAME.fullmatch(name) and name not in _TAKEN and len(name) <= _NAME_BYTES_MAX:
        if pa.types.is_map(found):
            return _TABLE
        if pa.types.is_integer(found):
            return _LONG
        if pa.types.is_floating(found):
            return _DOUBLE
    raise PermanentError(f"{name!r} of type {found} cannot be a column of metrics")


def split(appended: str) -> tuple[str, Merge] | None:
    """Which column it is where batches append, and how it merges; None for a key or a bound."""
    merge = _BY_SUFFIX.get(appended[-len(BOUND) :])
    return (appended[: -len(BOUND)], merge) if merge else None


def sql_type(declared: str) -> str:
    return f"{declared} {COLLATED}" if declared == _TABLE else declared

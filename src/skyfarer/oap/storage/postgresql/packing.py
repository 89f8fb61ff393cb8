"""Who packs hours and days that are over (`packed`), and when: whoever folds, after it.

An hour is over for a source once the source has a minute that is MINUTES_OVER past it, a day once
there is such a minute of a later day: that is said by what is stored, and by no clock. What comes
later all the same undoes the pack; it is made again, but not sooner than PAUSE_S after the last
time, however often that happens.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import starmap
from typing import Final, NamedTuple

from psycopg.errors import UndefinedTable

from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.streams.metrics import PREFIX
from skyfarer.oap.storage.postgresql import columnar, packed, schema
from skyfarer.oap.storage.postgresql.columns import KEYS
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.metrics import stored_columns

MINUTES_OVER: Final = 5
PAUSE_S: Final = 300.0
PACKS_A_TURN: Final = 8
PACKED_ROWS_MAX: Final = 250_000
"""Of a table and precision. More are read as merged rows: few questions may have so many."""
_LAST_HOUR: Final = 23
_TABLE: Final = re.compile(f"({PREFIX}[a-z_]+)_([0-9]{{8}})")
_NUMBERS: Final = frozenset(("bigint", "double precision"))


class Wanted(NamedTuple):
    """Of a table the buckets with so many digits, up to that one."""

    table: str
    digits: int
    through: int


class Packing(ABC):
    _packed_s: dict[tuple[str, int], float]  # when this node packed it last, by the steady clock

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Cursor]: ...

    def pack(self) -> int:
        """PACKS_A_TURN of what is over and not packed; how many it were. What another node packs or
        folds meanwhile is left for the next time. Blocks on the database; from one thread."""
        with self._reading() as cursor:
            wanted = list(_wanted(cursor))
        now_s, made = time.monotonic(), 0
        there = {(one.table, one.digits) for one in wanted}
        self._packed_s = {key: at for key, at in self._packed_s.items() if key in there}
        for one in wanted:
            last_s = self._packed_s.get((one.table, one.digits), now_s - PAUSE_S)
            if made < PACKS_A_TURN and now_s - last_s >= PAUSE_S:
                made += self._pack(one)
                self._packed_s[one.table, one.digits] = now_s
        return made

    def _pack(self, wanted: Wanted) -> bool:
        try:
            with self._transaction() as cursor:
                return schema.try_to_take(cursor, schema.Lock.FOLDING) and _packed(cursor, wanted)
        except RetryableError as error:
            if not isinstance(error.__cause__, UndefinedTable):
                raise
            return False  # its day has expired


def _wanted(cursor: Cursor) -> Iterator[Wanted]:
    """What is over and not packed, or not so far, the newest first."""
    days: dict[str, list[int]] = {}
    for model, day in filter(None, starmap(_split, schema.columns(cursor, len(KEYS)).items())):
        days.setdefault(model, []).append(day)
    minutes = _newest_minutes(cursor, {model: max(some) for model, some in days.items()})
    cursor.execute("SELECT table_name, digits, min(through) FROM packed_metrics GROUP BY 1, 2")
    packed_through = {(table, digits): through for table, digits, through in cursor.fetchall()}
    over = (one for model, newest in minutes.items() for one in _over(model, days[model], newest))
    for one in sorted(over, key=lambda one: one.table[-8:], reverse=True):
        if packed_through.get((one.table, one.digits), 0) < one.through:
            yield one


def _split(table: str, first: tuple[str, ...]) -> tuple[str, int] | None:
    found = _TABLE.fullmatch(table) if first == KEYS else None
    return (found[1], int(found[2])) if found else None


def _newest_minutes(cursor: Cursor, newest: Mapping[str, int]) -> dict[str, int]:
    """By model; one whose newest table has no rows yet is left out. A minute is a larger number
    than any hour or day."""
    if not newest:
        return {}
    query = " UNION ALL ".join(
        f"SELECT '{model}', max(time_bucket) FROM {model}_{day:08d}"
        for model, day in newest.items()
    )
    found = cursor.execute(query, prepare=False).fetchall()
    return {model: minute for model, minute in found if minute is not None}


def _over(model: str, days: list[int], newest_minute: int) -> Iterator[Wanted]:
    hour, minute = divmod(newest_minute, 100)
    if minute < MINUTES_OVER:
        return
    for day in sorted(days):
        table = f"{model}_{day:08d}"
        if day < hour // 100:
            yield Wanted(table, packed.HOUR, day * 100 + _LAST_HOUR)
            yield Wanted(table, packed.DAY, day)
        elif hour % 100 > 0:
            yield Wanted(table, packed.HOUR, hour - 1)


def _packed(cursor: Cursor, wanted: Wanted) -> bool:
    """False for too many rows, and for none: its day has expired."""
    table, digits, through = wanted
    if not (columns := stored_columns(cursor, table)):
        return False
    types = {name: columns[name] for name in KEYS}
    types |= {name: of_type for name, of_type in columns.items() if of_type in _NUMBERS}
    first = packed.first_bucket(table, digits)
    within = f"FROM {table} WHERE time_bucket BETWEEN {first} AND {through}"
    ((count,),) = cursor.execute(f"SELECT count(*) {within}", prepare=False).fetchall()
    if count > PACKED_ROWS_MAX:
        return False
    listed = ", ".join(f'"{name}"' for name in types)
    query = f"SELECT {listed} {within} ORDER BY time_bucket, entity_id"
    packed.store(cursor, table, digits, through, columnar.read_once(cursor, query, types))
    return True

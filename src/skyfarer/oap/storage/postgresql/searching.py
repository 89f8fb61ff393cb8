"""What searches have in common: a bound on their time, and conditions as SQL.

The statements of a search are not prepared: the best plan depends on what is asked for, and one
for any tag at all is wrong for rare ones and for common ones. Those that look something up by a key
are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Final

from skyfarer.oap.core.deadline import left_s
from skyfarer.oap.core.events import EventCondition
from skyfarer.oap.core.logs import LogCondition
from skyfarer.oap.core.traces import TraceCondition
from skyfarer.oap.storage.buckets import has_day
from skyfarer.oap.storage.postgresql.copying import Cursor

Row = tuple[Any, ...]
WITHIN: Final = "time_bucket BETWEEN %(first)s AND %(last)s"
_INSTANTS: Final = "BETWEEN %(from_ms)s AND %(to_ms)s"
_SECOND_MS: Final = 1000
_NOTICED: Final = 0.1
"""Of the time for a search: once so much is spent, the next statement is given less of it."""


class Search:
    """Statements that have one bound on their time together. The connection bounds each of them
    already, so nothing has to be said to the server while they are quick."""

    def __init__(self, cursor: Cursor, timeout_s: float) -> None:
        self.cursor = cursor
        self._timeout_s = timeout_s
        self._end_s = time.monotonic() + left_s(timeout_s)

    def rows(
        self, statement: str, values: Mapping[str, object], prepare: bool = False
    ) -> list[Row]:
        remaining_s = self._end_s - time.monotonic()
        if self._timeout_s - remaining_s > _NOTICED * self._timeout_s:
            bound_to(self.cursor, remaining_s)
        return self.cursor.execute(statement, values, prepare=prepare).fetchall()


def bound_to(cursor: Cursor, timeout_s: float) -> None:
    """Every statement from here on, within its transaction."""
    timeout_ms = max(int(timeout_s * _SECOND_MS), 1)
    cursor.execute(f"SET LOCAL statement_timeout = {timeout_ms}")


def asked(
    condition: TraceCondition | LogCondition | EventCondition,
    tests: Mapping[str, str],
    tags: Sequence[str] = (),
) -> tuple[list[str], dict[str, object]]:
    """Of `tests` (field of the condition → what it asks of a row) those that are asked for, tags
    and time, and what they bind: a value under its field's name."""
    values = {name: getattr(condition, name) for name in tests}
    values = {name: value for name, value in values.items() if value is not None}
    found = ["true", *(tests[name] for name in values)]
    if tags:
        found.append("tags @> %(tags)s::text[]")
        values["tags"] = list(tags)
    if condition.between is not None:
        found.append(WITHIN)
        values["first"], values["last"] = condition.between
    return found, values


def narrow(
    tests: list[str],
    values: dict[str, object],
    between: tuple[int, int] | None,
    column: str,
    zone: tzinfo,
) -> None:
    """Adds what follows of a range of second buckets for a column of epoch ms, which has an index
    and an order."""
    if between is not None and (span := instants(between, zone)) is not None:
        tests.append(f"{column} {_INSTANTS}")
        values["from_ms"], values["to_ms"] = span


def by_day(
    tables: Sequence[str], tests: Sequence[str], between: tuple[int, int] | None
) -> dict[str, Sequence[str]]:
    """The tests of each table: of a day that is asked for as a whole no row's time is looked at,
    and the server has less to think about."""
    timeless = [test for test in tests if test != WITHIN and not test.endswith(_INSTANTS)]
    return {
        table: timeless if between and has_day(between, int(table[-8:])) else tests
        for table in tables
    }


def instants(between: tuple[int, int], zone: tzinfo) -> tuple[int, int] | None:
    """Epoch ms that no row of these second buckets lies outside of; None where they are no times.
    An hour that comes twice is within them both times."""
    try:
        ends = [[_epoch_ms(second, zone, fold) for fold in (0, 1)] for second in between]
    except (ValueError, OverflowError):
        return None
    return min(ends[0]), max(ends[1]) + _SECOND_MS - 1


def _epoch_ms(second: int, zone: tzinfo, fold: int) -> int:
    date, clock = divmod(second, 1_000_000)
    at = datetime(
        *(date // 10_000, date // 100 % 100, date % 100),
        *(clock // 10_000, clock // 100 % 100, clock % 100),
        tzinfo=zone,
        fold=fold,
    )
    return int(at.timestamp()) * _SECOND_MS

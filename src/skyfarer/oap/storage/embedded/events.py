"""Events in one table a day, one row a day for each.

An event is told again when it has ended: the row of that day is replaced by both together, and what
fell on two days is put together when it is read, by the same rule. The later one counts where it
says anything; an event begins with the earliest beginning and ends with the latest end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any, Final

import duckdb

from skyfarer.oap.core.events import EventCondition, StoredEvent
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.records import EVENT, MESSAGE
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.storage import parameters
from skyfarer.oap.storage.embedded import models, schema
from skyfarer.oap.storage.embedded.searching import WITHIN, asked

NAME: Final = EVENT.name
_MODEL: Final = model(EVENT)
_TESTS: Final = {
    "uuid": "uuid = $uuid",
    "service": "service = $service",
    "instance": "service_instance = $instance",
    "endpoint": "endpoint = $endpoint",
    "name": "event_name = $name",
    "type": "type = $type",
    "layer": "layer = $layer",
}


def _latest(column: str, nothing: str = "") -> str:
    return f"coalesce(arg_max({column}, age) FILTER ({column} <> '{nothing}'), '{nothing}')"


# Column → what it is of all the rows of one event, which have an age. The last two are what it is
# found by: its beginning, else its end, else its arrival.
_MERGED: Final = {
    "uuid": "uuid",
    "service": _latest("service"),
    "service_instance": _latest("service_instance"),
    "endpoint": _latest("endpoint"),
    "event_name": _latest("event_name"),
    "type": "max(type)",
    "message": _latest("message"),
    "parameters": _latest("parameters"),
    "start_time": "coalesce(min(start_time) FILTER (start_time <> 0), 0)",
    "end_time": "max(end_time)",
    "layer": _latest("layer", Layer.UNDEFINED.name),
    "timestamp": """coalesce(min(start_time) FILTER (start_time <> 0),
        max(end_time) FILTER (end_time <> 0), max(timestamp))""",
    "time_bucket": """coalesce(arg_min(time_bucket, start_time) FILTER (start_time <> 0),
        arg_max(time_bucket, end_time) FILTER (end_time <> 0), max(time_bucket))""",
}
_COLUMNS: Final = ", ".join(_MERGED)
_FIELDS: Final = [field.name for field in fields(StoredEvent)]


def store(cursor: duckdb.DuckDBPyConnection, day: int) -> None:
    """Those of the `incoming` rows, with their parameters `written`, of that day."""
    table = models.make(cursor, _MODEL, day)
    cursor.execute(
        f"""INSERT OR REPLACE INTO {table}
        WITH told AS (
            SELECT uuid, service, instance AS service_instance, endpoint, name AS event_name, type,
                message[:{MESSAGE.length}] AS message, parameters, begun AS start_time,
                ended AS end_time, layer,
                coalesce(nullif(begun, 0), nullif(ended, 0), minute * {MINUTE_MS}) AS timestamp,
                bucket * 100 + timestamp // 1000 % 60 AS time_bucket, sequence AS age
            FROM incoming WHERE bucket // 10000 = $day),
        known AS (SELECT *, -1 AS age FROM {table} SEMI JOIN told USING (uuid))
        {_merging("(FROM told UNION ALL FROM known)")}""",
        {"day": day},
    )


def _merging(rows: str) -> str:
    columns = ", ".join(f"{merged} AS {column}" for column, merged in _MERGED.items())
    return f"SELECT {columns} FROM {rows} GROUP BY uuid"


class EventReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def events(
        self, condition: EventCondition, newest_first: bool, offset: int, limit: int
    ) -> list[StoredEvent]:
        tests, values = asked(condition, _TESTS)
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, NAME)
            if not tables:
                return []
            query = _page(tables, tests, "DESC" if newest_first else "ASC")
            rows = cursor.execute(query, {**values, "limit": limit, "offset": offset})
            return [_event(row) for row in rows.fetchall()]


def _page(tables: Sequence[str], tests: Sequence[str], order: str) -> str:
    """The time that an event is found by is that of one of its rows, so only events that have such
    a row are put together, out of all days."""
    days = " UNION ALL ".join(
        f"SELECT {_COLUMNS}, {age} AS age FROM {table}" for age, table in enumerate(tables)
    )
    of_rows = ["true", *(test for test in tests if test in (WITHIN, _TESTS["uuid"]))]
    return f"""WITH told AS ({days}),
        wanted AS (SELECT uuid FROM told WHERE {" AND ".join(of_rows)}),
        merged AS ({_merging("told SEMI JOIN wanted USING (uuid)")})
        SELECT * EXCLUDE (timestamp, time_bucket) FROM merged
        WHERE {" AND ".join(tests)} ORDER BY timestamp {order}, uuid LIMIT $limit OFFSET $offset"""


def _event(row: tuple[Any, ...]) -> StoredEvent:
    told = dict(zip(_FIELDS, row, strict=True))
    return StoredEvent(**told | {"parameters": parameters.read(told["parameters"])})

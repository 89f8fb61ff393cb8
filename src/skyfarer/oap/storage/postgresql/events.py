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

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.events import EventCondition, StoredEvent
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.records import EVENT, MESSAGE
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.storage import parameters
from skyfarer.oap.storage.postgresql import copying, models, schema
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.searching import WITHIN, Search, asked

NAME: Final = EVENT.name
_MODEL: Final = model(EVENT)
_INCOMING: Final = "incoming_event"
_TESTS: Final = {
    "uuid": "uuid = %(uuid)s",
    "service": "service = %(service)s",
    "instance": "service_instance = %(instance)s",
    "endpoint": "endpoint = %(endpoint)s",
    "name": "event_name = %(name)s",
    "type": "type = %(type)s",
    "layer": "layer = %(layer)s",
}


def _first(column: str, order: str, test: str) -> str:
    return f"(array_agg({column} ORDER BY {order}) FILTER (WHERE {test}))[1]"


def _latest(column: str, nothing: str = "") -> str:
    told = _first(column, "age DESC", f"{column} <> '{nothing}'")
    return f"coalesce({told}, '{nothing}')"


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
    "start_time": "coalesce(min(start_time) FILTER (WHERE start_time <> 0), 0)",
    "end_time": "max(end_time)",
    "layer": _latest("layer", Layer.UNDEFINED.name),
    "timestamp": """coalesce(min(start_time) FILTER (WHERE start_time <> 0),
        max(end_time) FILTER (WHERE end_time <> 0), max(timestamp))""",
    "time_bucket": f"""coalesce({_first("time_bucket", "start_time", "start_time <> 0")},
        {_first("time_bucket", "end_time DESC", "end_time <> 0")}, max(time_bucket))""",
}
_COLUMNS: Final = ", ".join(_MERGED)
_FIELDS: Final = [field.name for field in fields(StoredEvent)]


def tables(day: int) -> dict[str, list[str]]:
    return models.of_day(_MODEL, day)


def bring(cursor: Cursor, rows: pa.Table) -> None:
    """All of a batch, with their minute buckets in `bucket`, for `store`."""
    cut = pc.utf8_slice_codeunits(rows["message"], 0, MESSAGE.length)
    rows = rows.set_column(rows.schema.get_field_index("message"), "message", cut)
    copying.bring(cursor, _INCOMING, parameters.written(rows))


def store(cursor: Cursor, day: int) -> None:
    """What was brought of that day."""
    table = _MODEL.of_day(day)
    replaced = ", ".join(f"{column} = excluded.{column}" for column in _MERGED)
    cursor.execute(
        f"""INSERT INTO {table} WITH told AS (
            SELECT uuid, service, instance AS service_instance, endpoint, name AS event_name, type,
                message, parameters, begun AS start_time, ended AS end_time, layer, at AS timestamp,
                bucket * 100 + at / 1000 %% 60 AS time_bucket, sequence AS age
            FROM {_INCOMING}, LATERAL (SELECT coalesce(
                nullif(begun, 0), nullif(ended, 0), minute * {MINUTE_MS}) AS at) AS moment
            WHERE bucket / 10000 = %(day)s),
        known AS (SELECT {_COLUMNS}, -1 FROM {table} WHERE uuid IN (SELECT uuid FROM told))
        {_merging("(SELECT * FROM told UNION ALL SELECT * FROM known) AS both_told")}
        ON CONFLICT (uuid) DO UPDATE SET {replaced}""",
        {"day": day},
    )


def _merging(rows: str) -> str:
    columns = ", ".join(f"{merged} AS {column}" for column, merged in _MERGED.items())
    return f"SELECT {columns} FROM {rows} GROUP BY uuid"


class EventReads(ABC):
    _read_timeout_s: float

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def events(
        self, condition: EventCondition, newest_first: bool, offset: int, limit: int
    ) -> list[StoredEvent]:
        tests, values = asked(condition, _TESTS)
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, NAME)
            if not tables:
                return []
            query = _page(tables, tests, "DESC" if newest_first else "ASC")
            search = Search(cursor, self._read_timeout_s)
            rows = search.rows(query, {**values, "limit": limit, "offset": offset})
            return [_event(row) for row in rows]


def _page(tables: Sequence[str], tests: Sequence[str], order: str) -> str:
    """The time that an event is found by is that of one of its rows, so only events that have such
    a row are put together, out of all days."""
    days = " UNION ALL ".join(
        f"SELECT {_COLUMNS}, {age} AS age FROM {table}" for age, table in enumerate(tables)
    )
    of_rows = ["true", *(test for test in tests if test in (WITHIN, _TESTS["uuid"]))]
    read = ", ".join(list(_MERGED)[: len(_FIELDS)])
    return f"""WITH told AS NOT MATERIALIZED ({days}),
        wanted AS (SELECT DISTINCT uuid FROM told WHERE {" AND ".join(of_rows)}),
        merged AS ({_merging("told JOIN wanted USING (uuid)")})
        SELECT {read} FROM merged WHERE {" AND ".join(tests)}
        ORDER BY timestamp {order}, uuid LIMIT %(limit)s OFFSET %(offset)s"""


def _event(row: tuple[Any, ...]) -> StoredEvent:
    told = dict(zip(_FIELDS, row, strict=True))
    return StoredEvent(**told | {"parameters": parameters.read(told["parameters"])})

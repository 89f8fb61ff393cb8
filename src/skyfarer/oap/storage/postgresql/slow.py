"""The slowest statements and commands of each entity and minute, in one table a day and kind.

A batch's are added, and whatever is then beyond the bound in the minutes it touched is taken out:
what once was beyond it can never come back, so exactly the slowest stay. That holds among several
nodes too, since they do it one after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.slow import SLOWEST_MAX, Slow, SlowStatement
from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.records import SLOW, STATEMENT
from skyfarer.oap.storage.entities import names
from skyfarer.oap.storage.postgresql import copying, models, schema
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.pages import Listing
from skyfarer.oap.storage.postgresql.searching import WITHIN, Search, by_day
from skyfarer.oap.storage.postgresql.segments import seconds

_INCOMING: Final = "incoming_slow"
_COLUMNS: Final = ("id", "entity_id", "statement", "latency", "trace_id", "timestamp")
_MODELS: Final = {what: model(stream) for what, stream in SLOW.items()}
_LISTING: Final = Listing(
    _COLUMNS, [("latency", True), ("id", False)], by_day=False, tested=("time_bucket",)
)


def tables(what: Slow, day: int) -> dict[str, list[str]]:
    """Without a key, which nothing is looked for by: ids are unique in a batch, and a segment comes
    only once."""
    return models.of_day(_MODELS[what], day, keyed=False)


def bring(cursor: Cursor, rows: pa.Table) -> None:
    """All of a batch, with their minute buckets in `bucket`, for `store`."""
    normal = pa.array([what.name for what in Slow if what.normal], pa.string())
    flags = pc.if_else(pc.is_in(rows["what"], normal), "1", "0")
    columns = {name: rows[name] for name in ("what", "bucket", "id", "latency", "trace_id")}
    columns |= {
        "entity_id": pc.binary_join_element_wise(names(rows, "service"), flags, "."),
        "statement": pc.utf8_slice_codeunits(rows["statement"], 0, STATEMENT.length),
        "timestamp": rows["start_time"],
        "time_bucket": seconds(rows),
    }
    copying.bring(cursor, _INCOMING, pa.table(columns))


def store(cursor: Cursor, what: Slow, day: int) -> None:
    """What was brought of that kind and day."""
    table, told = _MODELS[what].of_day(day), {"what": what.name, "day": day}
    cursor.execute(
        f"""INSERT INTO {table}
        SELECT DISTINCT ON (id) {", ".join(_COLUMNS)}, time_bucket FROM {_INCOMING}
        WHERE what = %(what)s AND bucket / 10000 = %(day)s ORDER BY id, latency DESC""",
        told,
    )
    cursor.execute(
        f"""DELETE FROM {table} WHERE ctid IN (SELECT place FROM (
            SELECT {table}.ctid AS place, row_number() OVER (
                PARTITION BY entity_id, time_bucket / 100 ORDER BY latency DESC, id) AS number
            FROM {table} JOIN (
                SELECT DISTINCT bucket FROM {_INCOMING} WHERE what = %(what)s
            ) AS touched ON time_bucket BETWEEN bucket * 100 AND bucket * 100 + 99
        ) AS numbered WHERE number > {SLOWEST_MAX})""",
        told,
    )


class SlowReads(ABC):
    _read_timeout_s: float

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def slowest(
        self, what: Slow, entity_id: str | None, between: tuple[int, int], limit: int
    ) -> list[SlowStatement]:
        tests, values = ["true", WITHIN], dict[str, object](first=between[0], last=between[1])
        if entity_id is not None:
            tests.append("entity_id = %(entity)s")
            values["entity"] = entity_id
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, what.value, between)
            search = Search(cursor, self._read_timeout_s)
            days = by_day(tables[::-1], tests, between)
            page = _LISTING.page(search, days, values, limit)
            return [SlowStatement(*row[:-1]) for row in page]

"""The slowest statements and commands of each entity and minute, in one table a day and kind.

A batch's are added, and whatever is then beyond the bound in the minutes it touched is taken out:
what once was beyond it can never come back, so exactly the slowest stay. There is no primary key,
since rows are deleted in the transaction that adds others; ids are unique in a batch here, and a
segment comes only once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Final

import duckdb

from skyfarer.oap.core.slow import SLOWEST_MAX, Slow, SlowStatement
from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.records import SLOW, STATEMENT
from skyfarer.oap.storage.embedded import models, schema
from skyfarer.oap.storage.embedded.names import SERVICE_NAME

_MODELS: Final = {what: model(stream) for what, stream in SLOW.items()}


def store(cursor: duckdb.DuckDBPyConnection, what: Slow, day: int) -> None:
    """Those of the `incoming` rows of that day."""
    table = models.make(cursor, _MODELS[what], day, keyed=False)
    cursor.execute(
        f"""INSERT INTO {table}
        SELECT id, {SERVICE_NAME} || '.{int(what.normal)}', statement[:{STATEMENT.length}],
            latency, trace_id, start_time, bucket * 100 + start_time // 1000 % 60
        FROM incoming WHERE what = $what AND bucket // 10000 = $day
        QUALIFY row_number() OVER (PARTITION BY id ORDER BY latency DESC) = 1""",
        {"what": what.name, "day": day},
    )
    cursor.execute(
        f"""DELETE FROM {table} WHERE id IN (
        SELECT id FROM {table} WHERE time_bucket // 100 IN (SELECT DISTINCT bucket FROM incoming)
        QUALIFY row_number() OVER (
            PARTITION BY entity_id, time_bucket // 100 ORDER BY latency DESC, id
        ) > {SLOWEST_MAX})"""
    )


class SlowReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def slowest(
        self, what: Slow, entity_id: str | None, between: tuple[int, int], limit: int
    ) -> list[SlowStatement]:
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, what.value, between)
            if not tables:
                return []
            everything = " UNION ALL ".join(f"SELECT * FROM {table}" for table in tables)
            rows = cursor.execute(
                f"""SELECT id, entity_id, statement, latency, trace_id, timestamp
                FROM ({everything}) WHERE time_bucket BETWEEN $first AND $last
                AND ($entity IS NULL OR entity_id = $entity)
                ORDER BY latency DESC, id LIMIT $limit""",
                {"first": between[0], "last": between[1], "entity": entity_id, "limit": limit},
            )
            return [SlowStatement(*row) for row in rows.fetchall()]

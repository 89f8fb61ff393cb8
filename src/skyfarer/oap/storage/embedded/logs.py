"""Logs in one table a day, found by whom they are of, by time, by trace and by their tags.

A log has no name of its own: its key is its place in the queue, and in its export where it came in
one; that also tells apart the logs of one millisecond. `trace_id` has no index: among five million
logs a trace is found in 0.06 s without one (and in 0.002 s with it), while each batch would cost
half as much again to write.

Bytes are searched for words as the text that DuckDB makes of them, `\\x0a` for what is no letter:
the same for a word and wherever it stands, so nothing that has the word is missed. A million logs
of 400 bytes are searched in 1.3 s of processor time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Final

import duckdb

from skyfarer.oap.core.logs import LogCondition, StoredLog
from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.records import LOG
from skyfarer.oap.storage.embedded import models, schema, tags
from skyfarer.oap.storage.embedded.searching import Place, asked, blobs

NAME: Final = LOG.name
_MODEL: Final = model(LOG)
_COLUMNS: Final = "service_id, service_instance_id, endpoint_id, trace_id, timestamp, kind"
_TESTS: Final = {
    "service_id": "service_id = $service_id",
    "instance_id": "service_instance_id = $instance_id",
    "endpoint_id": "endpoint_id = $endpoint_id",
    "trace_id": "trace_id = $trace_id",
    "segment_id": "trace_segment_id = $segment_id",
    "span_id": "span_id = $span_id",
}
_HAS_WORD: Final = "contains(lower(payload::VARCHAR), lower(${name}::BLOB::VARCHAR))"


def store(cursor: duckdb.DuckDBPyConnection, partition: str, day: int) -> None:
    """Those of the `incoming` rows, `identified`, of that day."""
    table = models.make(cursor, _MODEL, day)
    cursor.execute(
        f"""INSERT INTO {table}
        SELECT $partition, sequence, part, service_id, instance_id, endpoint_id, trace_id,
            log_segment_id, span_id, bucket * 100 + start_time // 1000 % 60, start_time, tags,
            kind, payload
        FROM incoming WHERE bucket // 10000 = $day""",
        {"partition": partition, "day": day},
    )
    tags.store(cursor, LOG.tag_type, day)


class LogReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def logs(
        self, condition: LogCondition, newest_first: bool, offset: int, limit: int, bytes_max: int
    ) -> list[StoredLog]:
        tests, values = asked(condition, _TESTS, condition.tags)
        words = {f"word_{n}": word.encode() for n, word in enumerate(condition.words)}
        tests += [_HAS_WORD.format(name=name) for name in words]
        values |= words
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, NAME, condition.between)
            if not tables:
                return []
            query = _page(tables, " AND ".join(tests), "DESC" if newest_first else "ASC")
            rows = cursor.execute(query, {**values, "limit": limit, "offset": offset}).fetchall()
            data = blobs(cursor, "payload", [Place(*row[-2:]) for row in rows], bytes_max)
            return [StoredLog(*[*row[:-2], some]) for row, some in zip(rows, data, strict=True)]

    def log_tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            return tags.keys(cursor, LOG.tag_type, between, limit)

    def log_tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            return tags.values(cursor, LOG.tag_type, key, between, limit)


def _page(tables: list[str], where: str, order: str) -> str:
    """Newest first turns the places around too: of one millisecond the last line comes first."""
    days = " UNION ALL ".join(
        f"""SELECT {_COLUMNS}, partition, sequence, part, '{table}' AS of_table, rowid AS of_row
        FROM {table} WHERE {where}"""
        for table in tables
    )
    return f"""SELECT {_COLUMNS}, of_table, of_row FROM ({days})
        ORDER BY timestamp {order}, partition {order}, sequence {order}, part {order}
        LIMIT $limit OFFSET $offset"""

"""Logs in one table a day, found by whom they are of, by time, by trace and by their tags.

A log has no name of its own: its key is its place in the queue, and in its export where it came in
one; that also tells apart the logs of one millisecond. Many are of no trace at all, and those are
left out of the index of traces. A log's bytes are few and stay in its row; those of a page are
fetched by the place of the row (`ctid`), which holds for a snapshot.

Bytes are searched for words as the text that PostgreSQL makes of them, `\\303` for what is no
ASCII: the same for a word and wherever it stands, so nothing that has the word is missed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from datetime import tzinfo
from typing import Final

import pyarrow as pa

from skyfarer.oap.core.logs import LogCondition, StoredLog
from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.records import LOG
from skyfarer.oap.storage.entities import identified
from skyfarer.oap.storage.postgresql import copying, models, schema, tags
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.pages import Listing, Place, blobs
from skyfarer.oap.storage.postgresql.searching import Search, asked, by_day, narrow
from skyfarer.oap.storage.postgresql.segments import seconds

NAME: Final = LOG.name
_MODEL: Final = model(LOG)
_PLACE: Final = tuple(column.name for column in LOG.key)
_LISTED: Final = (
    *("ctid::text", "coalesce(octet_length(payload), 0)", "service_id", "service_instance_id"),
    *("endpoint_id", "trace_id", "timestamp", "kind", *_PLACE),
)
_STORED: Final = (
    *("sequence", "part", "service_id", "endpoint_id", "trace_id", "span_id", "tags", "kind"),
    "payload",
)
_BYTES: Final = "SELECT ctid::text, payload FROM {table} WHERE ctid = ANY(%(keys)s::tid[])"
_TRACED: Final = models.says_something(_MODEL, "trace_id")
_TESTS: Final = {
    "service_id": "service_id = %(service_id)s",
    "instance_id": "service_instance_id = %(instance_id)s",
    "endpoint_id": "endpoint_id = %(endpoint_id)s",
    "trace_id": "trace_id = %(trace_id)s",
    "segment_id": "trace_segment_id = %(segment_id)s",
    "span_id": "span_id = %(span_id)s",
}
_TEXT_OF: Final = "lower(encode({}, 'escape') COLLATE \"C\")"
_HAS_WORD: Final = (
    f"strpos({_TEXT_OF.format('payload')}, {_TEXT_OF.format('%({name})s::bytea')}) > 0"
)


def tables(day: int) -> dict[str, list[str]]:
    return models.of_day(_MODEL, day)


def store(cursor: Cursor, partition: str, rows: pa.Table, day: int) -> None:
    """Rows of that day, with their minute buckets in `bucket`."""
    rows = identified(rows)
    columns = {name: rows[name] for name in _STORED} | {
        "partition": pa.array([partition] * rows.num_rows, pa.string()),
        "service_instance_id": rows["instance_id"],
        "trace_segment_id": rows["log_segment_id"],
        "time_bucket": seconds(rows),
        "timestamp": rows["start_time"],
    }
    copying.append(cursor, _MODEL.of_day(day), pa.table(columns))


class LogReads(ABC):
    _zone: tzinfo
    _read_timeout_s: float

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def logs(
        self, condition: LogCondition, newest_first: bool, offset: int, limit: int, bytes_max: int
    ) -> list[StoredLog]:
        """Newest first turns the places around too: of one millisecond the last line comes
        first."""
        tests, values = asked(condition, _TESTS, condition.tags)
        words = {f"word_{n}": word.encode() for n, word in enumerate(condition.words)}
        tests += [_HAS_WORD.format(name=name) for name in words]
        values |= words
        narrow(tests, values, condition.between, "timestamp", self._zone)
        if condition.trace_id:
            tests.append(_TRACED)
        listing = Listing(_LISTED, [(key, newest_first) for key in ("timestamp", *_PLACE)])
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, NAME, condition.between)
            search = Search(cursor, self._read_timeout_s)
            days = by_day(tables[::-1] if newest_first else tables, tests, condition.between)
            page = listing.page(search, days, values, offset + limit)[offset:]
            places = [Place(row[-1], *row[:2]) for row in page]
            data = blobs(search, _BYTES, places, bytes_max)
            return [StoredLog(*[*row[2:8], some]) for row, some in zip(page, data, strict=True)]

    def log_tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            return tags.keys(Search(cursor, self._read_timeout_s), LOG.tag_type, between, limit)

    def log_tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            search = Search(cursor, self._read_timeout_s)
            return tags.values(search, LOG.tag_type, key, between, limit)

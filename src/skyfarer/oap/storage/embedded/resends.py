"""Segments that came already, in the tables of their day (`known`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import partial
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.buckets import minute_buckets
from skyfarer.oap.storage.embedded import models, schema
from skyfarer.oap.storage.embedded.known import Known
from skyfarer.oap.storage.embedded.searching import snapshot

LOOKED_UP_MAX: Final = 64
"""By the index; of more it is faster to read them all."""


class Resends(ABC):
    _zone: tzinfo
    _known: Known

    @abstractmethod
    def _cursor(self) -> duckdb.DuckDBPyConnection: ...

    def known_segments(self, ids: pa.ChunkedArray, minutes: pa.ChunkedArray) -> Iterable[str]:
        cursor, texts = self._cursor(), ids.to_pylist()
        buckets = minute_buckets(pa.table({"minute": minutes}), self._zone)
        found: list[str] = []
        for day in np.unique(buckets // PRECISIONS[-1]).tolist():
            suspects = self._known.suspects(day, texts, partial(self._stored, day))
            with snapshot(cursor):
                for table in _tables(cursor, day) if suspects else ():
                    found += _found(cursor, table, suspects)
        return found

    def _stored(self, day: int) -> Iterator[list[str]]:
        """In a snapshot of its own, that is as new as the question."""
        cursor = self._cursor()
        with snapshot(cursor):
            for table in _tables(cursor, day):
                for batch in cursor.sql(f"SELECT segment_id FROM {table}").to_arrow_reader():
                    yield batch["segment_id"].to_pylist()

    def _know(self, batch: Analysed) -> None:
        """Of a batch that is durable, or may be."""
        for segments in (batch.segments, batch.unsampled):
            if segments is None or not segments.num_rows:
                continue
            days = minute_buckets(segments, self._zone) // PRECISIONS[-1]
            for day in np.unique(days).tolist():
                texts = segments["segment_id"].filter(pa.array(days == day))
                self._known.add(day, texts.to_pylist())


def _tables(cursor: duckdb.DuckDBPyConnection, day: int) -> list[str]:
    either = models.SEGMENT.of_day(day), models.UNSAMPLED.of_day(day)
    return sorted(schema.present(cursor).intersection(either))


def _found(cursor: duckdb.DuckDBPyConnection, table: str, wanted: Sequence[str]) -> Iterable[str]:
    if not wanted:
        return []
    query = f"SELECT segment_id FROM {table} WHERE segment_id IN ({', '.join('?' * len(wanted))})"
    if len(wanted) <= LOOKED_UP_MAX:
        rows = cursor.execute(query, list(wanted))
    else:
        cursor.register("wanted", pa.table({"segment_id": pa.array(wanted, pa.string())}))
        query = f"SELECT segment_id FROM {table} SEMI JOIN wanted USING (segment_id)"
        rows = cursor.execute(query)
    return [found for (found,) in rows.fetchall()]

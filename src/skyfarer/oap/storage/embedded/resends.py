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
from skyfarer.oap.storage.embedded import schema
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
        with snapshot(cursor):
            present = schema.present(cursor)
            for day in np.unique(buckets // PRECISIONS[-1]).tolist():
                either = schema.segment_table(day), schema.unsampled_table(day)
                tables = sorted(present.intersection(either))
                if tables:
                    suspects = self._known.suspects(day, texts, partial(_stored, cursor, tables))
                    for table in tables:
                        yield from _found(cursor, table, suspects)

    def _know(self, batch: Analysed) -> None:
        """Of a batch that is durable, or may be."""
        for segments in (batch.segments, batch.unsampled):
            if segments is None or not segments.num_rows:
                continue
            days = minute_buckets(segments, self._zone) // PRECISIONS[-1]
            for day in np.unique(days).tolist():
                texts = segments["segment_id"].filter(pa.array(days == day))
                self._known.add(day, texts.to_pylist())


def _stored(cursor: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> Iterator[list[str]]:
    for table in tables:
        for batch in cursor.sql(f"SELECT segment_id FROM {table}").to_arrow_reader():
            yield batch["segment_id"].to_pylist()


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

"""What a batch stores once and for all, and what is found again in it: segments, logs, events, slow
statements, with their tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import tzinfo

import pyarrow as pa

from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.core.streams.records import LOG, SEGMENT, UNSAMPLED
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.buckets import days_in, minute_buckets
from skyfarer.oap.storage.postgresql import events, logs, schema, segments, slow, tags
from skyfarer.oap.storage.postgresql.copying import Cursor


class RecordWrites(ABC):
    """Parts of one `apply`, called in this order."""

    _zone: tzinfo

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def known_segments(self, ids: pa.ChunkedArray, minutes: pa.ChunkedArray) -> Iterable[str]:
        days = days_in(minute_buckets(pa.table({"minute": minutes}), self._zone))
        stored = {f"{name}_{day:08d}" for name in _WITH_SEGMENTS for day in days}
        with self._reading() as cursor:
            tables = sorted(stored.intersection(schema.present(cursor)))
            return segments.known(cursor, tables, ids.to_pylist())

    def _record_tables(self, batch: Analysed) -> dict[str, list[str]]:
        """Table of a day → the statements that make it and its indices, without harm twice. They
        run in a transaction of their own, and only while this process has not seen the table."""
        found = dict[str, list[str]]()
        for day in self._days(batch.segments):
            found |= segments.tables(day) | tags.tables(day)
        for day in self._days(batch.unsampled):
            found |= segments.unsampled_tables(day)
        for day in self._days(batch.logs):
            found |= logs.tables(day) | tags.tables(day)
        for day in self._days(batch.events):
            found |= events.tables(day)
        for what, day in self._slow(batch):
            found |= slow.tables(what, day)
        return found

    def _bring_records(self, cursor: Cursor, batch: Analysed) -> None:
        """Without a lock, while others write: rows that no other batch has, in order of their keys
        (two that insert the same must meet at the first), and temporary tables for what follows."""
        for day, rows in self._daily(batch.segments):
            segments.store(cursor, rows, day)
        for day, rows in self._daily(batch.unsampled):
            segments.store_unsampled(cursor, rows, day)
        for day, rows in self._daily(batch.logs):
            logs.store(cursor, batch.partition, rows, day)
        if batch.slow is not None and batch.slow.num_rows:
            slow.bring(cursor, self._bucketed(batch.slow))
        if batch.events is not None and batch.events.num_rows:
            events.bring(cursor, self._bucketed(batch.events))

    def _merge_records(self, cursor: Cursor, batch: Analysed) -> None:
        """Alone (`Lock.MERGING`), if there is any: what changes rows that other batches change as
        well."""
        for day, rows in self._daily(batch.segments):
            tags.store(cursor, SEGMENT.tag_type, rows, day)
        for day, rows in self._daily(batch.logs):
            tags.store(cursor, LOG.tag_type, rows, day)
        if self._days(batch.slow) or self._days(batch.events):
            schema.take(cursor, schema.Lock.MERGING)
        for what, day in self._slow(batch):
            slow.store(cursor, what, day)
        for day in self._days(batch.events):
            events.store(cursor, day)

    def _days(self, rows: pa.Table | None) -> list[int]:
        return [] if rows is None else days_in(minute_buckets(rows, self._zone))

    def _slow(self, batch: Analysed) -> Iterator[tuple[Slow, int]]:
        told = set() if batch.slow is None else set(batch.slow["what"].to_pylist())
        kinds = [what for what in Slow if what.name in told]
        return ((what, day) for what in kinds for day in self._days(batch.slow))

    def _bucketed(self, rows: pa.Table) -> pa.Table:
        return rows.append_column("bucket", pa.array(minute_buckets(rows, self._zone)))

    def _daily(self, rows: pa.Table | None) -> Iterator[tuple[int, pa.Table]]:
        """The days, and the rows of each with their minute buckets."""
        if rows is None or not rows.num_rows:
            return
        rows = self._bucketed(rows)
        buckets = rows["bucket"].to_numpy()
        for day in (days := days_in(buckets)):
            here = pa.array(buckets // PRECISIONS[-1] == day)
            yield day, rows if len(days) == 1 else rows.filter(here)


_WITH_SEGMENTS = (SEGMENT.name, UNSAMPLED.name)

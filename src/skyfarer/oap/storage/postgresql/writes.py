"""The writing half: a batch of the pipeline in one transaction, beside those of other nodes.

    tables     what the batch needs and is not there is made, in a transaction of its own
    brought    rows that no other batch can have are stored; metrics are appended (`appended`)
    merged     alone (`Lock.MERGING`), if there is any: rows that others change too, as services,
               relations and tags are; each sees what the last one left
    durable    the offset is moved, and all of it is committed

Nobody waits for a lock while it has one that comes later, so no two wait for each other. The row of
the partition's offset is locked from the beginning: a batch whose answer was lost, and the same one
sent again, are never both at work.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from threading import Lock

import pyarrow as pa

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ADDRESS_ALIAS
from skyfarer.oap.core.storage import Analysed, Deltas
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.buckets import days_in, minute_buckets
from skyfarer.oap.storage.merging import Numbers
from skyfarer.oap.storage.postgresql import (
    aliases,
    appended,
    copying,
    expiry,
    heartbeats,
    inventory,
    metrics,
    models,
    relations,
    schema,
    traffic,
)
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.recording import RecordWrites
from skyfarer.oap.storage.seen import Seen

TABLES_KNOWN_MAX = 1024
_TELLING = traffic.SOURCES | relations.SOURCES | {ADDRESS_ALIAS}
"""Sources whose rows speak of more than metrics."""
_PARKED = pa.schema(
    {
        "sequence": pa.int64(),
        "kind": pa.int32(),
        "reason": pa.string(),
        "payload": pa.binary(),
    }
)


class Writes(RecordWrites):
    _applying: Lock  # what is remembered of a batch follows its transaction
    _tables: metrics.Tables  # of days, that need not be looked for
    _seen: Seen

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _await_folding(self) -> None: ...

    @abstractmethod
    def _brought(self, rows: Mapping[str, int]) -> None: ...

    def applied(self, partition: str) -> int:
        with self._reading() as cursor:
            return _applied(cursor, partition)

    def apply(self, batch: Analysed) -> None:
        with self._applying:
            try:
                self._apply(batch)
            except BaseException:
                self._tables = {}  # a table that another node has dropped is looked for again
                raise

    def _apply(self, batch: Analysed) -> None:
        told = {
            source: (deltas, minute_buckets(deltas.rows, self._zone))
            for source, deltas in sorted(batch.metrics.items())
            if deltas.rows.num_rows
        }
        wides = [
            one
            for source, (deltas, buckets) in told.items()
            if deltas.merges
            for one in metrics.wide(source, deltas, buckets)
        ]
        self._await_folding()
        days = self._make(batch, told, wides)
        self._seen.begin()
        with self._transaction() as cursor:
            number = _begin(cursor, batch)
            expiry.refuse_dropped(cursor, days)
            self._bring(cursor, batch)
            for one in wides:
                metrics.append(cursor, one, number)
            self._merge(cursor, batch, told)
            _advance(cursor, batch)
        self._seen.settle()
        self._brought({appended.appended_to(one.table): one.rows.num_rows for one in wides})

    def _make(
        self, batch: Analysed, told: dict[str, tuple[Deltas, Numbers]], wides: list[metrics.Wide]
    ) -> set[str]:
        """The tables of days that the batch needs; those that are missing are made, and known once
        they are durable."""
        wanted = {**self._record_tables(batch), **self._kept_tables(batch)}
        for source, (deltas, buckets) in told.items():
            wanted |= relations.tables(source, deltas.rows, buckets)
        days = {*wanted, *(one.table for one in wides)}
        unknown = {table: ddl for table, ddl in wanted.items() if table not in self._tables}
        incomplete = [one for one in wides if metrics.missing(self._tables, one)]
        if not unknown and not incomplete:
            return days
        known = {table: dict(columns) for table, columns in self._tables.items()}
        with self._transaction() as cursor:
            schema.take(cursor, schema.Lock.SCHEMA)
            expiry.refuse_dropped(cursor, days)
            schema.make(cursor, (one for ddl in unknown.values() for one in ddl))
            for one in incomplete:
                metrics.make(cursor, known, one)
        known |= {table: {} for table in unknown}
        self._tables = dict(list(known.items())[-TABLES_KNOWN_MAX:])
        return days

    def _kept_tables(self, batch: Analysed) -> dict[str, list[str]]:
        if batch.records is None:
            return {}
        days = days_in(minute_buckets(batch.records, self._zone))
        found = dict[str, list[str]]()
        for day in days:
            found |= models.of_day(models.RECORD, day)
        return found

    def _bring(self, cursor: Cursor, batch: Analysed) -> None:
        self._bring_records(cursor, batch)
        if batch.records is not None:
            self._keep(cursor, batch.partition, batch.records)
        if batch.parked:
            _park(cursor, batch)

    def _merge(
        self, cursor: Cursor, batch: Analysed, told: dict[str, tuple[Deltas, Numbers]]
    ) -> None:
        self._merge_records(cursor, batch)
        for source, (deltas, buckets) in told.items():
            if source in _TELLING:
                self._tell(cursor, source, deltas.rows, buckets)
        if batch.heartbeats or batch.inventories:
            schema.take(cursor, schema.Lock.MERGING)
        if beats := [*batch.heartbeats, *inventory.register(cursor, batch.inventories)]:
            heartbeats.store(cursor, beats, self._zone)

    def _tell(self, cursor: Cursor, source: str, rows: pa.Table, buckets: Numbers) -> None:
        """Relations and what there is."""
        fresh = self._seen.fresh(source, rows, buckets)
        rows, buckets = rows.filter(pa.array(fresh)), buckets[fresh]
        if not rows.num_rows:
            return
        schema.take(cursor, schema.Lock.MERGING)
        if source == ADDRESS_ALIAS:
            aliases.store(cursor, rows, buckets)
            return
        relations.store(cursor, source, rows, buckets)
        traffic.store(cursor, source, rows, buckets)

    def _keep(self, cursor: Cursor, partition: str, rows: pa.Table) -> None:
        buckets = minute_buckets(rows, self._zone)
        rows = rows.select(["sequence", "kind", "payload"])
        rows = rows.append_column("time_bucket", pa.array(buckets))
        rows = rows.append_column("partition", pa.array([partition] * len(buckets), pa.string()))
        for day in days_in(buckets):
            of_day = rows.filter(pa.array(buckets // PRECISIONS[-1] == day))
            copying.append(cursor, models.RECORD.of_day(day), of_day)


def _applied(cursor: Cursor, partition: str) -> int:
    query = "SELECT next_sequence FROM source_offset WHERE partition = %s"
    rows = cursor.execute(query, [partition]).fetchall()
    return int(rows[0][0]) if rows else 0


def _begin(cursor: Cursor, batch: Analysed) -> int:
    """Locks the partition; the number of the transaction. PermanentError for a batch that does not
    follow what is applied."""
    cursor.execute(
        "INSERT INTO source_offset VALUES (%s, 0, 0) ON CONFLICT DO NOTHING", [batch.partition]
    )
    query = """SELECT next_sequence, txid_current() FROM source_offset
        WHERE partition = %s FOR UPDATE"""
    ((applied, number),) = cursor.execute(query, [batch.partition]).fetchall()
    if applied != batch.first:
        raise PermanentError(
            f"a batch of {batch.partition} begins at {batch.first}, "
            f"but storage has applied it up to {applied}"
        )
    return int(number)


def _park(cursor: Cursor, batch: Analysed) -> None:
    rows = pa.Table.from_pylist([asdict(record) for record in batch.parked], schema=_PARKED)
    partitions = pa.array([batch.partition] * rows.num_rows, pa.string())
    copying.append(cursor, "parked_record", rows.append_column("partition", partitions))


def _advance(cursor: Cursor, batch: Analysed) -> None:
    delivered = batch.end - batch.first - sum(batch.dropped.values())
    cursor.execute(
        """UPDATE source_offset SET next_sequence = %s, delivered = delivered + %s
        WHERE partition = %s""",
        [batch.end, delivered, batch.partition],
    )
    for reason, records in sorted(batch.dropped.items()):
        cursor.execute(
            """INSERT INTO source_dropped AS t VALUES (%s, %s, %s)
            ON CONFLICT (partition, reason) DO UPDATE SET records = t.records + excluded.records""",
            [batch.partition, reason, records],
        )

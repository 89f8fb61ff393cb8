"""The writing half: a batch of the pipeline in one transaction."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import tzinfo
from threading import Lock

import duckdb
import numpy as np
import pyarrow as pa

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ADDRESS_ALIAS
from skyfarer.oap.core.layers import layer_named
from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.storage import Analysed, Deltas, Heartbeat
from skyfarer.oap.core.streams.metrics import SOURCES
from skyfarer.oap.core.streams.records import SEGMENT
from skyfarer.oap.core.time_bucket import MINUTE_MS, PRECISIONS, minute_bucket
from skyfarer.oap.storage import parameters
from skyfarer.oap.storage.buckets import minute_buckets
from skyfarer.oap.storage.embedded import (
    aliases,
    events,
    hours,
    inventory,
    logs,
    metrics,
    models,
    relations,
    signatures,
    slow,
    tags,
    traffic,
)
from skyfarer.oap.storage.embedded.names import (
    SEGMENT_ENDPOINT,
    SEGMENT_INSTANCE,
    SEGMENT_SERVICE,
)
from skyfarer.oap.storage.embedded.resends import Resends
from skyfarer.oap.storage.embedded.searching import snapshot
from skyfarer.oap.storage.entities import identified
from skyfarer.oap.storage.merging import Numbers
from skyfarer.oap.storage.seen import Seen

TABLES_KNOWN_MAX = 256
log = logging.getLogger(__name__)
_TELLING = traffic.SOURCES | relations.SOURCES | {ADDRESS_ALIAS}
"""Sources whose rows speak of more than metrics."""


class Writes(Resends, ABC):
    _zone: tzinfo
    _applying: Lock  # what is remembered of a batch follows its transaction
    _tables: metrics.Tables  # of metrics, that need not be looked for
    _seen: Seen
    _ended: list[str]  # tables of metrics whose day is over, one of a source and day

    @abstractmethod
    def _cursor(self) -> duckdb.DuckDBPyConnection: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    @abstractmethod
    def _aliases_changed(self) -> None: ...

    @abstractmethod
    def _refuse_dropped(self, day: int, *models: str) -> None: ...

    def applied(self, partition: str) -> int:
        cursor = self._cursor()
        with snapshot(cursor):
            return _applied(cursor, partition)

    def apply(self, batch: Analysed) -> None:
        with self._applying:
            tables = {table: dict(columns) for table, columns in self._tables.items()}
            self._seen.begin()
            try:
                with self._transaction() as cursor:
                    aliased = self._store(cursor, tables, batch)
            finally:
                self._know(batch)  # a commit that was cut off may be durable all the same
            self._ended += hours.ended(self._tables, tables)
            self._tables = dict(list(tables.items())[-TABLES_KNOWN_MAX:])
            self._seen.settle()
            if aliased:
                self._aliases_changed()
            if self._ended:
                self._gather(self._ended.pop())

    def _gather(self, table: str) -> None:
        """One table a batch, which is durable already: it must not fail for this."""
        try:
            with self._transaction() as cursor:
                hours.gather(cursor, table)
        except (RetryableError, PermanentError) as error:
            log.warning("hours of %s stay where they are, and are read slower: %s", table, error)

    def _store(
        self, cursor: duckdb.DuckDBPyConnection, tables: metrics.Tables, batch: Analysed
    ) -> bool:
        """True when an alias has changed."""
        applied = _applied(cursor, batch.partition)
        if applied != batch.first:
            raise PermanentError(
                f"a batch of {batch.partition} begins at {batch.first}, "
                f"but storage has applied it up to {applied}"
            )
        self._store_segments(cursor, batch.segments)
        if batch.unsampled is not None:
            self._store_unsampled(cursor, batch.unsampled)
        if batch.slow is not None:
            self._store_slow(cursor, batch.slow)
        if batch.logs is not None:
            self._store_logs(cursor, batch.partition, batch.logs)
        if batch.events is not None:
            self._store_events(cursor, batch.events)
        aliased = [
            self._store_source(cursor, tables, source, deltas)
            for source, deltas in batch.metrics.items()
            if deltas.rows.num_rows
        ]
        if batch.records is not None:
            self._store_records(cursor, batch.partition, batch.records)
        if beats := [*batch.heartbeats, *inventory.register(cursor, batch.inventories)]:
            self._store_heartbeats(cursor, beats)
        if batch.parked:
            _park(cursor, batch)
        _advance(cursor, batch)
        return any(aliased)

    def _bucketed(self, rows: pa.Table) -> Numbers:
        return minute_buckets(rows, self._zone)

    def _brought(
        self, cursor: duckdb.DuckDBPyConnection, rows: pa.Table, *models: str
    ) -> list[int]:
        """Registers `incoming` rows with their `bucket`; returns the days they fall on, none of
        which was dropped of the `models` that they are stored in."""
        buckets = self._bucketed(rows)
        cursor.register("incoming", rows.append_column("bucket", pa.array(buckets)))
        days: list[int] = np.unique(buckets // PRECISIONS[-1]).tolist()
        for day in days[:1]:
            self._refuse_dropped(day, *models)
        return days

    def _store_segments(self, cursor: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        for day in self._brought(cursor, signatures.signed(rows), models.SEGMENT.name, tags.NAME):
            table = models.make(cursor, models.SEGMENT, day)
            cursor.execute(
                f"""INSERT INTO {table} BY NAME
                SELECT segment_id, trace_id, {SEGMENT_SERVICE} AS service_id,
                       {SEGMENT_INSTANCE} AS service_instance_id, {SEGMENT_ENDPOINT} AS endpoint_id,
                       bucket * 100 + start_time // 1000 % 60 AS time_bucket, start_time,
                       latency, is_error, data_binary, kind, tags, {signatures.COLUMN}
                FROM incoming WHERE bucket // 10000 = ?""",
                [day],
            )
            tags.store(cursor, SEGMENT.tag_type, day)

    def _store_unsampled(self, cursor: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
        for day in self._brought(cursor, rows, models.UNSAMPLED.name):
            table = models.make(cursor, models.UNSAMPLED, day)
            cursor.execute(
                f"""INSERT INTO {table}
                SELECT segment_id FROM incoming WHERE bucket // 10000 = ?""",
                [day],
            )

    def _store_slow(self, cursor: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
        names = set(rows["what"].to_pylist())
        told = [what for what in Slow if what.name in names]
        for day in self._brought(cursor, rows, *(what.value for what in told)):
            for what in told:
                slow.store(cursor, what, day)

    def _store_logs(
        self, cursor: duckdb.DuckDBPyConnection, partition: str, rows: pa.Table
    ) -> None:
        for day in self._brought(cursor, identified(rows), logs.NAME, tags.NAME):
            logs.store(cursor, partition, day)

    def _store_events(self, cursor: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
        for day in self._brought(cursor, parameters.written(rows), events.NAME):
            events.store(cursor, day)

    def _store_records(
        self, cursor: duckdb.DuckDBPyConnection, partition: str, rows: pa.Table
    ) -> None:
        for day in self._brought(cursor, rows, models.RECORD.name):
            table = models.make(cursor, models.RECORD, day)
            cursor.execute(
                f"""INSERT INTO {table}
                SELECT ?, sequence, kind, bucket, payload
                FROM incoming WHERE bucket // 10000 = ?""",
                [partition, day],
            )

    def _store_source(
        self,
        cursor: duckdb.DuckDBPyConnection,
        tables: metrics.Tables,
        source: str,
        deltas: Deltas,
    ) -> bool:
        """Metrics, relations and what there is. True when an alias has changed."""
        buckets = self._bucketed(deltas.rows)
        models = [SOURCES[source].name] if deltas.merges else []
        oldest = int(buckets.min()) // PRECISIONS[-1]
        self._refuse_dropped(oldest, *models, *relations.models_of(source))
        if deltas.merges:
            metrics.merge(cursor, tables, source, deltas, buckets)
        if source not in _TELLING:
            return False
        fresh = self._seen.fresh(source, deltas.rows, buckets)
        rows, buckets = deltas.rows.filter(pa.array(fresh)), buckets[fresh]
        if not rows.num_rows:
            return False
        if source == ADDRESS_ALIAS:
            return aliases.store(cursor, rows, buckets)
        relations.store(cursor, source, rows, buckets)
        traffic.store(cursor, source, rows, buckets)
        return False

    def _store_heartbeats(
        self, cursor: duckdb.DuckDBPyConnection, beats: Sequence[Heartbeat]
    ) -> None:
        """One row an instance, whatever it said how often: properties are merged key by key."""
        rows = [self._beat_row(beat) for beat in beats]
        cursor.register("beat", pa.Table.from_pylist(rows, schema=_BEAT))
        cursor.execute(_BEAT_SERVICES)
        known = cursor.execute(_KNOWN_PROPERTIES).fetchall()
        properties = {part: json.loads(text) for part, text in known if text}
        for row, beat in zip(rows, beats, strict=True):
            properties.setdefault(row["id"], {}).update(beat.properties or {})
        texts = {part: json.dumps(pairs) for part, pairs in properties.items()}
        merged = {row["id"]: {**row, "properties": texts[row["id"]]} for row in rows}
        cursor.register("beat", pa.Table.from_pylist(list(merged.values()), schema=_BEAT))
        cursor.execute(_BEAT_INSTANCES)

    def _beat_row(self, beat: Heartbeat) -> dict[str, str | int]:
        service, layer = ids.service_id(beat.service), layer_named(beat.layer)
        return {
            "id": ids.instance_id(service, beat.instance),
            "service_id": service,
            "service": beat.service,
            "instance": beat.instance,
            "row_id": f"{service[:-2]}.{layer.value}",
            "layer": layer.name,
            "bucket": minute_bucket(beat.minute * MINUTE_MS, self._zone),
        }


_PARKED = pa.schema(
    {
        "sequence": pa.int64(),
        "kind": pa.int32(),
        "reason": pa.string(),
        "payload": pa.binary(),
    }
)
_BEAT = pa.schema(
    {
        **dict.fromkeys(("id", "service_id", "service", "instance", "row_id"), pa.string()),
        "layer": pa.string(),
        "bucket": pa.int64(),
        "properties": pa.string(),
    }
)
_BEAT_SERVICES = """INSERT OR IGNORE INTO service_traffic
    SELECT row_id, any_value(service_id), any_value(service), any_value(layer), min(bucket)
    FROM beat GROUP BY row_id"""
_KNOWN_PROPERTIES = "SELECT id, properties FROM instance_traffic SEMI JOIN beat USING (id)"
_BEAT_INSTANCES = """INSERT INTO instance_traffic
    SELECT id, service_id, instance, bucket, bucket, properties FROM beat
    ON CONFLICT DO UPDATE SET last_ping = greatest(last_ping, excluded.last_ping),
        properties = excluded.properties"""


def _applied(cursor: duckdb.DuckDBPyConnection, partition: str) -> int:
    query = "SELECT next_sequence FROM source_offset WHERE partition = ?"
    rows = cursor.execute(query, [partition]).fetchall()
    return int(rows[0][0]) if rows else 0


def _park(cursor: duckdb.DuckDBPyConnection, batch: Analysed) -> None:
    rows = [asdict(record) for record in batch.parked]
    cursor.register("incoming", pa.Table.from_pylist(rows, schema=_PARKED))
    cursor.execute(
        """INSERT INTO parked_record
        SELECT ?, sequence, kind, reason, payload FROM incoming""",
        [batch.partition],
    )


def _advance(cursor: duckdb.DuckDBPyConnection, batch: Analysed) -> None:
    delivered = batch.end - batch.first - sum(batch.dropped.values())
    cursor.execute(
        """INSERT INTO source_offset VALUES (?, ?, ?)
        ON CONFLICT DO UPDATE SET next_sequence = excluded.next_sequence,
            delivered = delivered + excluded.delivered""",
        [batch.partition, batch.end, delivered],
    )
    for reason, records in batch.dropped.items():
        cursor.execute(
            """INSERT INTO source_dropped VALUES (?, ?, ?)
            ON CONFLICT DO UPDATE SET records = records + excluded.records""",
            [batch.partition, reason, records],
        )

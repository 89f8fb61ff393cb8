"""One micro-batch becomes one storage transaction.

Storage says how far it has applied the queue; whatever of the batch lies before that is left out.
Spark gives one small row a record (what it is, or why it is parked) and the aggregated deltas; the
payloads that are stored are taken from the mapped queue itself and never pass through the JVM. Only
the spans of OTLP do, each with its bytes, since the queue has them in no such piece.
Results and the new offset are committed together; only then is the queue told that it may reuse
the space. A crash between any two of these steps repeats the batch and changes nothing twice.

Every record has one outcome. It is parked when it, or any span of it, cannot be analysed; else a
duplicate when all it held was stored before; else delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import Inventory, InventoryReader
from skyfarer.oap.core.storage import Analysed, Parked, Scope, Writer
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.pipeline.analysis.entry import NamingSettings, calls, records
from skyfarer.oap.pipeline.analysis.form import only
from skyfarer.oap.pipeline.analysis.heartbeats import heartbeats
from skyfarer.oap.pipeline.analysis.segments import TRANSLATED, one_form
from skyfarer.oap.pipeline.inventory import registrations
from skyfarer.oap.pipeline.outcomes import checked_end, code, duplicates_among, rows_of, unsound
from skyfarer.oap.pipeline.payloads import Payloads
from skyfarer.oap.pipeline.sources.rows import UNANALYSED
from skyfarer.oap.pipeline.sources.spans import SPANS_MAX
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import Kind

DUPLICATE = "duplicate"
_KEYS = {
    Scope.SERVICE: ("service",),
    Scope.INSTANCE: ("service", "instance"),
    Scope.ENDPOINT: ("service", "endpoint"),
}
_SEGMENT_COLUMNS = [
    *("sequence", "part", "kind", "segment_id", "trace_id", "service", "instance", "endpoint"),
    *("start_time", "latency", "is_error", "data"),
]
_UNANALYSED = pa.array(sorted(UNANALYSED), pa.int32())
_SUMS = ("calls", "latency_sum", "errors")


class BatchSink:
    """Called by Spark, one batch after the other, on a thread of the driver.

    `applied` is called on that thread after each batch is durable; it must not block.
    """

    def __init__(
        self,
        storage: Writer,
        inventories: InventoryReader,
        queue: Reader,
        consumer: Consumer,
        naming: NamingSettings,
        registry: Registry,
        clock: Clock,
        applied: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._inventories = inventories
        self._queue = queue
        self._payloads = Payloads(queue)
        self._consumer = consumer
        self._naming = naming
        self._registry = registry
        self._clock = clock
        self._applied = applied

    def __call__(self, batch: DataFrame, _batch_id: int) -> None:
        started = self._clock.monotonic_s()
        partition = self._queue.queue_id
        first = self._storage.applied(partition)
        fresh = batch.where(F.col("sequence") >= first).persist()
        try:
            rows = records(fresh, self._naming).toArrow()
            if rows.num_rows:
                self._apply(fresh, rows, first)
        finally:
            fresh.unpersist()
        self._registry.inc(table.PIPELINE_BATCHES)
        spent_s = self._clock.monotonic_s() - started
        self._registry.set(table.PIPELINE_BATCH_SECONDS, spent_s)

    def _apply(self, fresh: DataFrame, rows: pa.Table, first: int) -> None:
        kinds = frozenset(pc.unique(rows["kind"]).to_pylist())
        fresh, rows = self._one_form(fresh, rows, kinds)
        end = checked_end(rows, first)
        minute = self._clock.now_ms() // MINUTE_MS
        segments, repeated = self._new_segments(rows)
        parked, kept = self._parked(rows), self._kept(rows, minute)
        duplicates = duplicates_among(segments, repeated, parked)
        analysed = Analysed(
            partition=self._queue.queue_id,
            first=first,
            end=end,
            segments=self._with_bytes(segments),
            metrics=self._metrics(fresh, repeated) if segments.num_rows else {},
            records=kept,
            inventories=_inventories(fresh, kinds),
            heartbeats=heartbeats(rows, minute),
            parked=parked,
            dropped=Counter([DUPLICATE] * duplicates) + Counter(map(code, parked)),
        )
        self._storage.apply(analysed)
        for what, number in rows_of(analysed).items():
            self._registry.inc(table.PIPELINE_ROWS, number, what=what)
        self._applied()
        self._consumer.commit(end)
        self._count(end - first, parked, duplicates, kept)

    def _one_form(
        self, fresh: DataFrame, rows: pa.Table, kinds: Collection[int]
    ) -> tuple[DataFrame, pa.Table]:
        """Both with the segments of every protocol; the rows in the order of the queue."""
        if others := sorted(TRANSLATED.intersection(kinds)):
            fresh = one_form(fresh, kinds, self._inventories)
            told = records(fresh.where(F.col("kind").isin(others)), self._naming).toArrow()
            known = pc.invert(pc.is_in(rows["kind"], pa.array(others, pa.int32())))
            rows = pa.concat_tables([rows.filter(known), told], promote_options="default")
        parts = [("part", "ascending")] if Kind.OTLP_TRACES in kinds else []
        return fresh, rows.sort_by([("sequence", "ascending"), *parts])

    def _new_segments(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The segments to store, and those that came before (a resend)."""
        sound = pc.and_(pc.is_null(rows["reason"]), pc.is_valid(rows["segment_id"]))
        segments = rows.filter(sound).select(_SEGMENT_COLUMNS)
        minutes = pc.divide(segments["start_time"], MINUTE_MS)
        segments = segments.append_column("minute", minutes)
        ids = segments["segment_id"]
        known = set(self._storage.known_segments(ids, segments["minute"]))
        if not known and len(pc.unique(ids)) == len(ids):
            return segments, segments.slice(0, 0)
        keep = []
        for identifier in ids.to_pylist():
            keep.append(identifier not in known)
            known.add(identifier)
        mask = pa.array(keep)
        return segments.filter(mask), segments.filter(pc.invert(mask))

    def _with_bytes(self, segments: pa.Table) -> pa.Table:
        """Spans bring their bytes along; those of whole records are in the queue."""
        spans = segments.filter(pc.is_valid(segments["data"])).rename_columns(
            {"data": "data_binary"}
        )
        whole = segments.drop_columns("data")
        if spans.num_rows:
            whole = whole.filter(pc.is_null(segments["data"]))
        whole = whole.append_column("data_binary", self._payloads.many(whole["sequence"]))
        return pa.concat_tables([whole, spans.select(whole.schema.names)])

    def _metrics(self, fresh: DataFrame, repeated: pa.Table) -> dict[Scope, pa.Table]:
        if repeated.num_rows:
            fresh = fresh.where(~_place(F.col("sequence"), F.col("part")).isin(_places(repeated)))
        deltas = calls(fresh, self._naming).toArrow()
        return {scope: _rolled_up(deltas, keys) for scope, keys in _KEYS.items()}

    def _kept(self, rows: pa.Table, minute: int) -> pa.Table | None:
        """The records that nothing analyses, whole; None when there are none."""
        here = pc.and_(pc.is_in(rows["kind"], _UNANALYSED), pc.is_null(rows["reason"]))
        kept = rows.filter(here).select(["sequence", "kind"])
        if not kept.num_rows:
            return None
        minutes = pa.array([minute] * kept.num_rows, pa.int64())
        payloads = self._payloads.many(kept["sequence"])
        return kept.append_column("minute", minutes).append_column("payload", payloads)

    def _parked(self, rows: pa.Table) -> list[Parked]:
        return [
            Parked(sequence, kind, reason, self._payloads.one(sequence))
            for sequence, kind, reason in unsound(rows)
        ]

    def _count(
        self, records_read: int, parked: Sequence[Parked], repeated: int, kept: pa.Table | None
    ) -> None:
        count = partial(self._registry.inc, table.PIPELINE_RECORDS)
        count(records_read - len(parked) - repeated, outcome="stored")
        count(len(parked), outcome="parked")
        count(repeated, outcome="duplicate")
        for record in parked:
            self._registry.inc(table.PIPELINE_PARKED, reason=code(record))
        for one in pc.value_counts(kept["kind"]).to_pylist() if kept is not None else ():
            kind = Kind(one["values"]).name.lower()
            self._registry.inc(table.PIPELINE_KEPT, one["counts"], kind=kind)
        lag = self._queue.writing() - self._consumer.committed()
        self._registry.set(table.PIPELINE_BATCH_RECORDS, records_read)
        self._registry.set(table.PIPELINE_LAG_RECORDS, lag)


def _place(sequence: Column, part: Column) -> Column:
    """One number for a row: a record has fewer parts than this leaves room for."""
    return sequence * SPANS_MAX + part


def _places(rows: pa.Table) -> list[int]:
    places: list[int] = pc.add(pc.multiply(rows["sequence"], SPANS_MAX), rows["part"]).to_pylist()
    return places


def _inventories(fresh: DataFrame, kinds: Collection[int]) -> list[Inventory]:
    if Kind.INVENTORY not in kinds:
        return []
    told = fresh.where(F.col("inventory").isNotNull() & F.col("reason").isNull())
    return registrations(told.withColumn("inventory", only("inventory")))


def _rolled_up(deltas: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    grouped = deltas.group_by([*keys, "minute"]).aggregate([(name, "sum") for name in _SUMS])
    return grouped.rename_columns({f"{name}_sum": name for name in _SUMS})

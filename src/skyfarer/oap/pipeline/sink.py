"""One micro-batch becomes one storage transaction.

Storage says how far it has applied the queue; whatever of the batch lies before that is left out.
Spark gives one small row a record (`told`: what it is, or why it is parked) and the aggregated
deltas; the payloads that are stored are taken from the mapped queue itself and never pass through
the JVM. Only the spans and logs of OTLP do, each with its bytes, since the queue has them in no
such piece.
Results and the new offset are committed together; only then is the queue told that it may reuse
the space. A crash between any two of these steps repeats the batch and changes nothing twice.

Every record has one outcome. It is parked when it, or any span of it, cannot be analysed; expired
when it is older than what is kept; else a duplicate when all it held came before; else delivered,
whether or not its segments are among those that are sampled and stored.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.base.clock import Clock
from skyfarer.oap.core.expiry import DroppedDayError
from skyfarer.oap.core.inventory import Inventory, InventoryReader
from skyfarer.oap.core.storage import Analysed, Deltas, Parked, StoredMeanwhileError, Writer
from skyfarer.oap.core.streams.records import SEGMENT
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.pipeline.ahead import Ahead
from skyfarer.oap.pipeline.analysis.form import only
from skyfarer.oap.pipeline.analysis.heartbeats import heartbeats
from skyfarer.oap.pipeline.analysis.segments import TRANSLATED, one_form
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.v2 import WHOLE
from skyfarer.oap.pipeline.disabled import but_disabled
from skyfarer.oap.pipeline.folding import together
from skyfarer.oap.pipeline.inventory import registrations
from skyfarer.oap.pipeline.logs import events_of, heard_of, logs_of
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.once import AnalysedOnce
from skyfarer.oap.pipeline.outcomes import (
    checked_end,
    code,
    duplicates_among,
    rows_of,
    told_apart,
    unsound,
)
from skyfarer.oap.pipeline.payloads import Payloads
from skyfarer.oap.pipeline.sampling import sampled
from skyfarer.oap.pipeline.slow import slow_statements
from skyfarer.oap.pipeline.sources.reports import REPORTS
from skyfarer.oap.pipeline.sources.rows import EXPORTS, STORED
from skyfarer.oap.pipeline.sources.shapes import REPORTS as REPORTED
from skyfarer.oap.pipeline.stretches import rows_at
from skyfarer.oap.pipeline.times import EXPIRED, timely, window
from skyfarer.oap.pipeline.told import Telling, told_again, unpacked
from skyfarer.oap.pipeline.told.again import OF_EVERY_ROW
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import Kind

DUPLICATE = "duplicate"
ANALYSED_AGAIN_MAX = 4
"""Times that one batch is, before it counts as failed and is read again after a pause."""
_SEGMENT_COLUMNS = [
    *("sequence", "part", "kind", "segment_id", "trace_id", "service", "instance", "endpoint"),
    *("start_time", "latency", "is_error", "tags", "slow", "gen_ai", "data"),
]
_EXPORTS = frozenset(EXPORTS)
_STORED = pa.array(sorted(STORED), pa.int32())

log = logging.getLogger(__name__)


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
        metrics: Metrics,
        settings: AnalysisSettings,
        registry: Registry,
        clock: Clock,
        applied: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._inventories = inventories
        self._queue = queue
        self._payloads = Payloads(queue)
        self._consumer = consumer
        self._settings = settings
        self._metrics = metrics
        self._registry = registry
        self._clock = clock
        self._applied = applied
        self._ahead = Ahead(metrics)
        self._told = records_query()

    def __call__(self, batch: DataFrame, _batch_id: int) -> None:
        started = self._clock.monotonic_s()
        partition = self._queue.queue_id
        first = self._storage.applied(partition)
        decoded = batch.persist()
        try:
            self._ahead.begin(decoded, self._storage.aliases())
            self._apply_in_time(*self._fresh(decoded, first), first)
        finally:
            self._ahead.end()
            decoded.unpersist()
        self._registry.inc(table.PIPELINE_BATCHES)
        spent_s = self._clock.monotonic_s() - started
        self._registry.set(table.PIPELINE_BATCH_SECONDS, spent_s)

    def close(self) -> None:
        """After the last batch; twice is once."""
        self._ahead.close()

    def _fresh(self, decoded: DataFrame, first: int) -> tuple[DataFrame, pa.Table]:
        """What storage has not applied: mostly all, and then nothing has to be said to Spark."""
        rows = unpacked(self._told.of(decoded).toArrow()["told"])
        applied = pc.less(rows["sequence"], first)
        if pc.any(applied).as_py():
            rows = rows.filter(pc.invert(applied))
            decoded = decoded.where(F.col("sequence") >= first)
        return decoded, rows

    def _apply_in_time(self, fresh: DataFrame, rows: pa.Table, first: int) -> None:
        """Storage may have changed since the batch began: a day that was dropped has made its rows
        too late, and a segment that another node has stored is a resend. Analysed again, it is so.
        """
        for _ in range(ANALYSED_AGAIN_MAX):
            try:
                self._apply(fresh, rows, first)
                return
            except (DroppedDayError, StoredMeanwhileError) as changed:
                log.info("%s", changed)
        self._apply(fresh, rows, first)

    def _apply(self, fresh: DataFrame, rows: pa.Table, first: int) -> None:
        if not rows.num_rows:
            return
        kinds = frozenset(pc.unique(rows["kind"]).to_pylist())
        fresh, rows = self._one_form(fresh, rows, kinds)
        now_ms = self._clock.now_ms()
        minute = now_ms // MINUTE_MS
        taken = window(now_ms, self._settings.retention, self._storage.expired())
        rows, untimely = timely(rows, taken)
        end = checked_end(rows, first)
        segments, repeated = self._new_segments(rows)
        slow = slow_statements(segments, self._settings.naming.service_chars_max)
        chosen, unsampled = self._sampled(segments.drop_columns(["slow", "gen_ai"]))
        bad, expired = told_apart(unsound(rows))
        parked, kept = self._parked(bad), self._kept(rows, minute)
        logs = logs_of(rows, self._payloads, now_ms)
        otherwise = [record.sequence for record in parked] + expired
        duplicates = duplicates_among(segments, repeated, otherwise)
        dropped = Counter(map(code, parked))
        dropped += Counter({DUPLICATE: duplicates, EXPIRED: len(expired)})
        analysed = Analysed(
            partition=self._queue.queue_id,
            first=first,
            end=end,
            segments=self._payloads.beside(chosen, "data_binary"),
            unsampled=unsampled,
            slow=slow,
            metrics=together(
                self._deltas(fresh, kinds, segments, (repeated, untimely)),
                heard_of(logs) if logs is not None else {},
            ),
            logs=logs,
            events=events_of(rows, now_ms),
            records=kept,
            inventories=_inventories(fresh, kinds),
            heartbeats=heartbeats(rows, minute),
            parked=parked,
            dropped=dropped,
        )
        analysed = but_disabled(analysed, self._metrics.disabled)
        self._storage.apply(analysed)
        for what, number in rows_of(analysed).items():
            self._registry.inc(table.PIPELINE_ROWS, number, what=what)
        self._applied()
        self._consumer.commit(end)
        self._registry.inc(table.PIPELINE_UNSAMPLED, unsampled.num_rows)
        self._count(end - first, dropped, parked, kept)

    def _one_form(
        self, fresh: DataFrame, rows: pa.Table, kinds: Collection[int]
    ) -> tuple[DataFrame, pa.Table]:
        """Both in one form, whatever the protocol; the rows in the order of the queue."""
        if others := sorted(TRANSLATED.intersection(kinds)):
            fresh = one_form(fresh, kinds, self._inventories)
            chosen = fresh.where(F.col("kind").isin(others))
            named = chosen.select(*OF_EVERY_ROW, WHOLE, REPORTED).toArrow()
            translated = told_again(named, WHOLE, REPORTED, Telling.by(self._settings))
            known = pc.invert(pc.is_in(rows["kind"], pa.array(others, pa.int32())))
            rows = pa.concat_tables([rows.filter(known), translated], promote_options="default")
        parts = [rows["part"].to_numpy()] if not _EXPORTS.isdisjoint(kinds) else []
        return fresh, rows_at(rows, np.lexsort((*parts, rows["sequence"].to_numpy())))

    def _new_segments(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The segments that are new, and those that came before (a resend)."""
        sound = pc.and_(pc.is_null(rows["reason"]), pc.is_valid(rows["segment_id"]))
        segments = rows_at(rows.select(_SEGMENT_COLUMNS), np.flatnonzero(sound.to_numpy()))
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

    def _sampled(self, segments: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Those to store, and those whose ids are kept alone."""
        if SEGMENT.name in self._metrics.disabled:
            return segments.slice(0, 0), segments
        return sampled(segments, self._settings.sampling)

    def _deltas(
        self, fresh: DataFrame, kinds: Collection[int], segments: pa.Table, but: Iterable[pa.Table]
    ) -> dict[str, Deltas]:
        """Of all records `but` these. A job of Spark's takes time where there is nothing to do."""
        traced, reported = segments.num_rows > 0, not REPORTS.keys().isdisjoint(kinds)
        if not traced and not reported:
            return {}
        places = pa.concat_tables(one.select(["sequence", "part"]) for one in but)
        if places.num_rows:
            others = F.broadcast(fresh.sparkSession.createDataFrame(places))
            fresh = fresh.join(others, ["sequence", "part"], "left_anti")
        found = self._ahead.of(fresh, self._storage.aliases()) if traced else {}
        if pc.any(segments["gen_ai"]).as_py():
            found = together(found, self._metrics.of_gen_ai(fresh))
        return together(found, self._metrics.of_reports(fresh, kinds)) if reported else found

    def _kept(self, rows: pa.Table, minute: int) -> pa.Table | None:
        """The records that are stored as they came; None when there are none."""
        here = pc.and_(pc.is_in(rows["kind"], _STORED), pc.is_null(rows["reason"]))
        kept = rows.filter(here).select(["sequence", "kind"])
        if not kept.num_rows:
            return None
        minutes = pa.array([minute] * kept.num_rows, pa.int64())
        payloads = self._payloads.many(kept["sequence"])
        return kept.append_column("minute", minutes).append_column("payload", payloads)

    def _parked(self, bad: Sequence[tuple[int, int, str]]) -> list[Parked]:
        return [Parked(*one, self._payloads.one(one[0])) for one in bad]

    def _count(
        self,
        records_read: int,
        dropped: Counter[str],
        parked: Sequence[Parked],
        kept: pa.Table | None,
    ) -> None:
        count = partial(self._registry.inc, table.PIPELINE_RECORDS)
        count(records_read - dropped.total(), outcome="stored")
        count(len(parked), outcome="parked")
        for outcome in (DUPLICATE, EXPIRED):
            count(dropped[outcome], outcome=outcome)
        for record in parked:
            self._registry.inc(table.PIPELINE_PARKED, reason=code(record))
        for one in pc.value_counts(kept["kind"]).to_pylist() if kept is not None else ():
            kind = Kind(one["values"]).name.lower()
            self._registry.inc(table.PIPELINE_KEPT, one["counts"], kind=kind)
        lag = self._queue.writing() - self._consumer.committed()
        self._registry.set(table.PIPELINE_BATCH_RECORDS, records_read)
        self._registry.set(table.PIPELINE_LAG_RECORDS, lag)


def records_query() -> AnalysedOnce:
    """What the driver is told of each record, `unpacked` by it."""
    return AnalysedOnce(lambda rows: rows.where("told IS NOT NULL").select("told"))


def _inventories(fresh: DataFrame, kinds: Collection[int]) -> list[Inventory]:
    if Kind.INVENTORY not in kinds:
        return []
    told = fresh.where(F.col("reason").isNull()).withColumn("inventory", only("inventory"))
    return registrations(told.where(F.col("inventory").isNotNull()))

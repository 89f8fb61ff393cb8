"""One micro-batch becomes one storage transaction.

Storage says how far it has applied the queue; whatever of the batch lies before that is left out.
Spark gives one small row a record (what it is, or why it is parked) and the aggregated deltas; the
payloads of stored segments are taken from the mapped queue itself and never pass through the JVM.
Results and the new offset are committed together; only then is the queue told that it may reuse
the space. A crash between any two of these steps repeats the batch and changes nothing twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Analysed, Heartbeat, Parked, Scope, Writer
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.pipeline.analysis.entry import NamingSettings, calls, records
from skyfarer.oap.pipeline.sources.rows import binaries
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

DUPLICATE = "duplicate"
_KEYS = {
    Scope.SERVICE: ("service",),
    Scope.INSTANCE: ("service", "instance"),
    Scope.ENDPOINT: ("service", "endpoint"),
}
_BEATS = ["beat_service", "beat_instance", "beat_layer", "beat_properties"]
_SEGMENT_COLUMNS = [
    *("sequence", "segment_id", "trace_id", "service", "instance", "endpoint"),
    *("start_time", "latency", "is_error"),
]
_SUMS = ("calls", "latency_sum", "errors")


class BatchSink:
    """Called by Spark, one batch after the other, on a thread of the driver."""

    def __init__(
        self,
        storage: Writer,
        queue: Reader,
        consumer: Consumer,
        naming: NamingSettings,
        registry: Registry,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._queue = queue
        self._consumer = consumer
        self._naming = naming
        self._registry = registry
        self._clock = clock

    def __call__(self, batch: DataFrame, _batch_id: int) -> None:
        started = self._clock.monotonic_s()
        partition = self._queue.queue_id
        first = self._storage.applied(partition)
        fresh = batch.where(F.col("sequence") >= first).persist()
        try:
            rows = records(fresh, self._naming).toArrow().sort_by("sequence")
            if rows.num_rows:
                self._apply(fresh, rows, first)
        finally:
            fresh.unpersist()
        self._registry.inc(table.PIPELINE_BATCHES)
        spent_s = self._clock.monotonic_s() - started
        self._registry.set(table.PIPELINE_BATCH_SECONDS, spent_s)

    def _apply(self, fresh: DataFrame, rows: pa.Table, first: int) -> None:
        end = _checked_end(rows["sequence"], first)
        segments, repeated = self._new_segments(rows)
        if repeated:
            fresh = fresh.where(~F.col("sequence").isin(repeated))
        deltas = calls(fresh, self._naming).toArrow()
        parked = self._parked(rows)
        self._storage.apply(
            Analysed(
                partition=self._queue.queue_id,
                first=first,
                end=end,
                segments=segments.append_column("data_binary", self._payloads(segments, end)),
                metrics={scope: _rolled_up(deltas, keys) for scope, keys in _KEYS.items()},
                heartbeats=_heartbeats(rows, self._clock.now_ms() // MINUTE_MS),
                parked=parked,
                dropped=Counter([DUPLICATE] * len(repeated)) + Counter(map(_code, parked)),
            )
        )
        self._consumer.commit(end)
        self._count(end - first, parked, len(repeated))

    def _new_segments(self, rows: pa.Table) -> tuple[pa.Table, list[int]]:
        """The segments to store, and the sequences of those that came before (a resend)."""
        sound = pc.and_(pc.is_null(rows["reason"]), pc.is_valid(rows["segment_id"]))
        segments = rows.filter(sound).select(_SEGMENT_COLUMNS)
        minutes = pc.divide(segments["start_time"], MINUTE_MS)
        segments = segments.append_column("minute", minutes)
        ids = segments["segment_id"]
        known = set(self._storage.known_segments(ids, segments["minute"]))
        if not known and len(pc.unique(ids)) == len(ids):
            return segments, []
        keep = []
        for identifier in ids.to_pylist():
            keep.append(identifier not in known)
            known.add(identifier)
        mask = pa.array(keep)
        return segments.filter(mask), segments["sequence"].filter(pc.invert(mask)).to_pylist()

    def _payloads(self, segments: pa.Table, end: int) -> pa.ChunkedArray:
        """The raw bytes of the segments, zero-copy from the queue where nothing is left out."""
        wanted = segments["sequence"].to_numpy()
        if not len(wanted):
            return pa.chunked_array([], pa.binary())
        chunks = []
        for run in self._queue.runs(int(wanted[0]), end):
            chosen = np.isin(np.arange(run.first, run.end), wanted, assume_unique=True)
            if chosen.any():
                chunks.append(binaries(run, chosen))
        return pa.chunked_array(chunks, pa.binary())

    def _parked(self, rows: pa.Table) -> list[Parked]:
        bad = rows.filter(pc.is_valid(rows["reason"])).select(["sequence", "kind", "reason"])
        return [
            Parked(row["sequence"], row["kind"], row["reason"], self._payload(row["sequence"]))
            for row in bad.to_pylist()
        ]

    def _payload(self, sequence: int) -> bytes:
        """As it stands in the queue, damaged or not; nothing for a record the queue has lost."""
        (run,) = self._queue.runs(sequence, sequence + 1)
        if not len(run.index):
            return b""
        start, length, *_ = run.index.cast("I").tolist()
        return bytes(run.data[start : start + length])

    def _count(self, records_read: int, parked: Sequence[Parked], repeated: int) -> None:
        count = partial(self._registry.inc, table.PIPELINE_RECORDS)
        count(records_read - len(parked) - repeated, outcome="stored")
        count(len(parked), outcome="parked")
        count(repeated, outcome="duplicate")
        for record in parked:
            self._registry.inc(table.PIPELINE_PARKED, reason=_code(record))
        lag = self._queue.writing() - self._consumer.committed()
        self._registry.set(table.PIPELINE_BATCH_RECORDS, records_read)
        self._registry.set(table.PIPELINE_LAG_RECORDS, lag)


def _code(record: Parked) -> str:
    """The word of the ledger that a reason begins with."""
    return record.reason.partition(":")[0]


def _checked_end(sequences: pa.ChunkedArray, first: int) -> int:
    """The batch must be exactly the records first … end: a gap would be a silent loss."""
    end = int(pc.max(sequences).as_py()) + 1
    if len(sequences) != end - first or pc.min(sequences).as_py() != first:
        raise PermanentError(
            f"the batch holds {len(sequences)} records where {first}…{end - 1} were expected: "
            "stored offsets and queue do not belong together"
        )
    return end


def _rolled_up(deltas: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    grouped = deltas.group_by([*keys, "minute"]).aggregate([(name, "sum") for name in _SUMS])
    return grouped.rename_columns({f"{name}_sum": name for name in _SUMS})


def _heartbeats(rows: pa.Table, minute: int) -> list[Heartbeat]:
    """Signs of life, in the order of the queue."""
    told = pc.and_(pc.is_null(rows["reason"]), pc.is_valid(rows["beat_service"]))
    return [
        Heartbeat(
            service=row["beat_service"],
            instance=row["beat_instance"],
            layer=row["beat_layer"] or Layer.GENERAL.name,
            minute=minute,
            properties=None
            if row["beat_properties"] is None
            else _properties(row["beat_properties"]),
        )
        for row in rows.filter(told).select(_BEATS).to_pylist()
    ]


def _properties(pairs: list[dict[str, str]]) -> dict[str, str]:
    """An instance may have several addresses: they become one entry, `ipv4s`."""
    plain = {pair["key"]: pair["value"] for pair in pairs if pair["key"] != "ipv4"}
    addresses = [pair["value"] for pair in pairs if pair["key"] == "ipv4"]
    return plain | ({"ipv4s": ",".join(addresses)} if addresses else {})

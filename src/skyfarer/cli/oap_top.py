"""`skyfarer oap top`: the way from the ingest queue to storage in one view, from the metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator

from skyfarer.cli.columns import columns
from skyfarer.cli.samples import Samples
from skyfarer.cli.watching import rate, watch

Count = tuple[str, str, dict[str, str]]
_HEADS = ("", "total", "a second")
_COUNTS: tuple[Count, ...] = (
    ("accepted", "queue_accepted_total", {}),
    ("stored", "pipeline_records_total", {"outcome": "stored"}),
    ("duplicate", "pipeline_records_total", {"outcome": "duplicate"}),
    ("parked", "pipeline_records_total", {"outcome": "parked"}),
    ("retried", "pipeline_retried_total", {}),
    ("refused", "queue_rejected_total", {}),
)
_SPLIT = (
    ("rows out", "pipeline_rows_total", "what"),
    ("dropped", "queue_dropped_total", "reason"),
)


def top(url: str, once: bool, interval_s: float) -> int:
    return watch(url, "OAP", view, once, interval_s)


def view(now: Samples, before: Samples | None, elapsed_s: float) -> list[str]:
    lines = [_HEADS]
    for name, metric, labels in [*_COUNTS, *_parts(now)]:
        total = now.total(metric, **labels)
        earlier = None if before is None else before.total(metric, **labels)
        lines.append((name, f"{total:.0f}", rate(total, earlier, elapsed_s)))
    return [*_summary(now, before, elapsed_s), "", *columns(lines)]


def _parts(now: Samples) -> Iterator[Count]:
    for name, metric, label in _SPLIT:
        for value in sorted(now.values(label, metric)):
            yield f"{name}: {value}", metric, {label: value}


def _summary(now: Samples, before: Samples | None, elapsed_s: float) -> Iterator[str]:
    total = now.total
    yield (
        f"lag {total('queue_queued_records'):.0f} records,"
        f" {_seconds(total('pipeline_lag_seconds'))}"
    )
    yield (
        f"last batch {total('pipeline_batch_records'):.0f} records in"
        f" {total('pipeline_batch_seconds'):.2f} s; {total('pipeline_batches_total'):.0f} batches,"
        f" {total('pipeline_restarts_total'):.0f} restarts"
    )
    yield _queue(total("queue_free_seconds"), total("queue_capacity_seconds"))
    earlier = None if before is None else 100 * before.total("process_cpu_seconds_total")
    cpu = rate(100 * total("process_cpu_seconds_total"), earlier, elapsed_s)
    yield f"memory {total('process_resident_memory_bytes') / 1e6:.0f} MB, cpu {cpu} %"


def _queue(free_s: float, capacity_s: float) -> str:
    if math.isinf(free_s):
        return "the queue lasts for ever at this rate"
    return f"the queue is full in {_seconds(free_s)} of {_seconds(capacity_s)} at this rate"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"

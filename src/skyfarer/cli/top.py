"""`skyfarer satellite top`: every pipe of a running satellite in one table, from its metrics."""

from __future__ import annotations

from dataclasses import dataclass

from skyfarer.cli.columns import columns
from skyfarer.cli.samples import Samples
from skyfarer.cli.watching import rate, watch

_HEADS = ("pipe", "in/s", "out/s", "accepted", "queued", "dropped", "refused", "retries", "queue")
_ARRIVALS = ("gatherer_receive_count", "gatherer_fetch_count")
_LOSSES = ("sender_abandoned_count", "processor_dropped_total")


@dataclass(frozen=True)
class Row:
    """One pipe at one moment; `arrived` and `left` are what rates are made of."""

    pipe: str
    arrived: float
    left: float
    accepted: int
    queued: int
    dropped: int
    refused: int
    retries: int
    full: float | None

    def cells(self, before: Row | None, elapsed_s: float) -> tuple[str, ...]:
        arrived, left = (None, None) if before is None else (before.arrived, before.left)
        rates = (rate(self.arrived, arrived, elapsed_s), rate(self.left, left, elapsed_s))
        counts = (self.accepted, self.queued, self.dropped, self.refused, self.retries)
        full = "-" if self.full is None else f"{100 * self.full:.0f} %"
        return (self.pipe, *rates, *map(str, counts), full)


def rows(samples: Samples) -> list[Row]:
    pipes = samples.values("pipe", *_ARRIVALS, "sender_committed_offset")
    return [_row(samples, pipe) for pipe in sorted(pipes)]


def _row(samples: Samples, pipe: str) -> Row:
    total = samples.total
    came = sum(total(name, pipe=pipe, status="all") for name in _ARRIVALS)
    refused = sum(total(name, pipe=pipe, status="abandoned") for name in _ARRIVALS)
    accepted = total("gatherer_writing_offset", pipe=pipe)
    left = total("sender_committed_offset", pipe=pipe)
    capacity = total("pipeline_queue_total_capacity", pipeline=pipe)
    used = total("pipeline_queue_partition_size", pipeline=pipe)
    return Row(
        pipe=pipe,
        arrived=came - refused,
        left=left,
        accepted=int(accepted),
        queued=int(accepted - left),
        dropped=int(sum(total(name, pipe=pipe) for name in _LOSSES)),
        refused=int(refused),
        retries=int(total("sender_retry_count", pipe=pipe)),
        full=used / capacity if capacity else None,
    )


def summary(samples: Samples) -> str:
    total = samples.total
    own, limit = total("satellite_own_memory_bytes"), total("satellite_memory_limit_bytes")
    most = f" of {limit / 1e6:.0f}" if limit else ""
    return (
        f"memory {own / 1e6:.1f}{most} MB, resident"
        f" {total('process_resident_memory_bytes') / 1e6:.1f} MB,"
        f" cpu {total('grpc_server_cpu_percent'):.1f} %,"
        f" connections {total('receiver_connections'):.0f}, tasks {total('satellite_tasks'):.0f}"
    )


def table(now: list[Row], before: list[Row], elapsed_s: float) -> list[str]:
    earlier = {row.pipe: row for row in before}
    return columns([_HEADS, *(row.cells(earlier.get(row.pipe), elapsed_s) for row in now)])


def view(now: Samples, before: Samples | None, elapsed_s: float) -> list[str]:
    earlier = rows(before) if before is not None else []
    return [summary(now), "", *table(rows(now), earlier, elapsed_s)]


def top(url: str, once: bool, interval_s: float) -> int:
    return watch(url, "satellite", view, once, interval_s)

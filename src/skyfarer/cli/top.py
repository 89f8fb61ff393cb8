"""`skyfarer satellite top`: every pipe of a running satellite in one table, from its metrics."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from skyfarer.base.errors import RetryableError
from skyfarer.cli.columns import columns
from skyfarer.cli.samples import Samples, fetch

CLEAR = "\x1b[H\x1b[J"
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
        rates = ("-", "-")
        if before is not None and elapsed_s > 0:
            gone = (self.arrived - before.arrived, self.left - before.left)
            rates = (f"{max(0.0, gone[0]) / elapsed_s:.1f}", f"{max(0.0, gone[1]) / elapsed_s:.1f}")
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
        f" cpu {total('grpc_server_cpu_gauge'):.1f} %,"
        f" connections {total('receiver_connections'):.0f}, tasks {total('satellite_tasks'):.0f}"
    )


def table(now: list[Row], before: list[Row], elapsed_s: float) -> list[str]:
    earlier = {row.pipe: row for row in before}
    return columns([_HEADS, *(row.cells(earlier.get(row.pipe), elapsed_s) for row in now)])


def top(url: str, once: bool, interval_s: float) -> int:
    """Blocks until interrupted, or with `once` for one look. A satellite that is away later, for a
    restart say, is waited for; RetryableError if it is away at first."""
    before: list[Row] = []
    looked_s = 0.0
    clear = CLEAR if sys.stdout.isatty() and not once else ""
    while True:
        now_s = time.monotonic()
        try:
            samples = fetch(url)
        except RetryableError as error:
            if not before:
                raise
            print(f"{clear}{error}", flush=True)
        else:
            now = rows(samples)
            lines = [summary(samples), "", *table(now, before, now_s - looked_s)]
            print(clear + "\n".join(lines), flush=True)
            before, looked_s = now, now_s
        if once:
            return 0
        time.sleep(interval_s)

"""How long the embedded storage holds up a batch, with its row groups and with DuckDB's own.

Batches of the demo's segments, a transaction each, into a new file; then the file's size after a
checkpoint. The longest batch is what a trace waits for at worst beyond its own; both are measured
in turns, since a shared machine only ever adds.
"""

from __future__ import annotations

import tempfile
import time
from datetime import UTC
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa

from figures import figure
from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.embedded.database import ROW_GROUP_ROWS
from skyfarer.testing.traffic import DemoTraffic

BATCHES = 75
SEGMENTS = 4_000
ROUNDS = 2
DUCKDB_ROWS = 122_880
SHARE_MAX = 0.5
SIZE_MAX = 1.1


class Run(NamedTuple):
    longest_s: float
    cpu_s: float
    bytes: int


def batches() -> list[pa.Table]:
    traffic, random = DemoTraffic(Random(1), SystemClock()), Random(2)
    now_ms, rows, made = int(time.time() * 1000), list[dict[str, object]](), list[pa.Table]()
    while len(made) < BATCHES:
        for one in traffic.trace(now_ms):
            rows.append(
                {
                    "segment_id": f"{random.getrandbits(128):032x}",
                    "trace_id": one.traceId,
                    "service": one.service,
                    "instance": one.serviceInstance,
                    "endpoint": one.spans[0].operationName,
                    "minute": now_ms // MINUTE_MS,
                    "start_time": now_ms,
                    "latency": 12,
                    "is_error": False,
                    "tags": ["http.method=GET"],
                    "kind": 1,
                    "data_binary": one.SerializeToString(),
                }
            )
        if len(rows) >= SEGMENTS:
            made.append(pa.Table.from_pylist(rows[:SEGMENTS]))
            rows = rows[SEGMENTS:]
    return made


def run(tables: list[pa.Table], row_group_rows: int) -> Run:
    with tempfile.TemporaryDirectory() as scratch:
        path, spent_s = Path(scratch) / "storage.duckdb", list[float]()
        storage = EmbeddedStorage(row_group_rows=row_group_rows)
        storage.start(path, UTC)
        begun_cpu_s = time.process_time()
        for number, segments in enumerate(tables):
            at = number * SEGMENTS
            begun_s = time.monotonic()
            storage.apply(Analysed("queue", at, at + SEGMENTS, segments, {}))
            spent_s.append(time.monotonic() - begun_s)
        cpu_s = time.process_time() - begun_cpu_s
        storage.stop()
        return Run(max(spent_s), cpu_s, path.stat().st_size)


def measure() -> None:
    tables = batches()
    ours, theirs = zip(
        *((run(tables, ROW_GROUP_ROWS), run(tables, DUCKDB_ROWS)) for _ in range(ROUNDS)),
        strict=True,
    )
    (longest_s, cpu_s, size), (duckdb_s, duckdb_cpu_s, duckdb_size) = (
        map(min, zip(*runs, strict=True)) for runs in (ours, theirs)
    )
    figure("storage_longest_batch", longest_s, f"s, {SEGMENTS} segments")
    figure("storage_longest_batch_of_duckdb", duckdb_s, f"s, row groups of {DUCKDB_ROWS}")
    share = longest_s / duckdb_s
    figure("storage_longest_batch_share", share, "of DuckDB's own", at_most=SHARE_MAX)
    figure("storage_cpu_share", cpu_s / duckdb_cpu_s, "of DuckDB's own", at_most=1.0)
    figure("storage_size_share", size / duckdb_size, "of DuckDB's own", at_most=SIZE_MAX)

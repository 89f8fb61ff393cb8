"""Batches that follow from their numbers, and what a storage holds that has applied some."""

from __future__ import annotations

import random

from contracts.storage_contract import BUCKET, batch, calls_of, delta, segment
from skyfarer.base.units import KIB
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.storage.embedded import EmbeddedStorage

QUEUE = "queue-a"
SEGMENTS = 20
BYTES_EACH = 24 * KIB


def numbered(number: int, bytes_each: int = BYTES_EACH) -> Analysed:
    """One record; its bytes cannot be compressed."""
    noise = random.Random(number)
    rows = [
        segment(f"{number}-{n}", data_binary=noise.randbytes(bytes_each)) for n in range(SEGMENTS)
    ]
    return batch(number, number + 1, rows, [delta()])


def whole(storage: EmbeddedStorage, bytes_each: int = BYTES_EACH) -> int:
    """How many batches there are, each of them once and with all that it brought."""
    reached = storage.applied(QUEUE)
    series = calls_of(storage, "Service", ids.service_id("shop"), BUCKET, BUCKET)
    assert [row["calls"] for row in series.values()] == [reached][: len(series)]
    assert bool(series) == bool(reached)
    query = "SELECT segment_id, data_binary FROM segment_20261115 ORDER BY ALL"
    rows = storage._cursor().execute(query).fetchall() if reached else []
    wanted = [row for n in range(reached) for row in numbered(n, bytes_each).segments.to_pylist()]
    assert rows == sorted((row["segment_id"], row["data_binary"]) for row in wanted)
    return reached

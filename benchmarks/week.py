"""A week of segments and of metrics, made column by column in Arrow from a seed.

Segments are spread evenly over their days, in the order of time, as they would have come: FAN of
them a trace, BYTES each, of which half are alike in all of them. Of ENDPOINTS endpoints, those of
one service share its instances.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyfarer.oap.core import ids
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.oal.plan import Operation, SourcePlan

Numbers = npt.NDArray[np.int64]

DAY_MS: Final = 1440 * MINUTE_MS
FIRST_DAY: Final = datetime(2026, 11, 9, tzinfo=UTC)
SERVICES: Final = 50
ENDPOINTS: Final = 1_000
INSTANCES: Final = 4
FAN: Final = 5
BYTES: Final = 1_500
BATCH: Final = 20_000
STATUSES: Final = np.array(["200", "201", "302", "404", "500"])
STATUS_SHARES: Final = (0.80, 0.10, 0.05, 0.03, 0.02)
METHODS: Final = np.array(["GET", "POST"])
LATENCY_MS: Final = 40
LATENCY_SPREAD: Final = 1.2
NUMBER_MAX: Final = 100_000
KEYS: Final = 60
ENTRIES: Final = 12
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


SEGMENT: Final = 0
TRACE: Final = 1
"""Kinds of `hex_ids`."""


def told(text: str) -> None:
    """To whoever waits."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def minute_of(day: int) -> int:
    """The epoch minute with which the day begins."""
    return int((FIRST_DAY + timedelta(days=day)).timestamp()) // 60


def day_bucket(day: int) -> int:
    return int((FIRST_DAY + timedelta(days=day)).strftime("%Y%m%d"))


def service_name(number: int) -> str:
    return f"shop-{number:02d}"


def endpoint_name(number: int) -> str:
    return f"GET:/api/v1/things/{number:04d}"


ENDPOINT_IDS: Final = [
    ids.endpoint_id(ids.service_id(service_name(n % SERVICES)), endpoint_name(n))
    for n in range(ENDPOINTS)
]


def segments(day: int, count: int) -> Iterator[pa.Table]:
    """A day's, in batches as `Analysed.segments` has them. Their ids are those of `hex_ids`."""
    start_ms = minute_of(day) * MINUTE_MS
    for first in range(0, count, BATCH):
        numbers = np.arange(first, min(first + BATCH, count))
        times = start_ms + numbers * DAY_MS // count
        yield _segments(day, numbers, times)


def hex_ids(kind: int, day: int, numbers: Numbers) -> pa.Array:
    """32 digits each, that follow from the numbers: to be asked for again without being kept."""
    seed = (kind * 1_000 + day) * 100_000_000 + numbers
    return _hex(np.stack([_mixed(seed), _mixed(seed + (1 << 62))], axis=1))


def _mixed(numbers: Numbers) -> npt.NDArray[np.uint64]:
    """SplitMix64: neighbours become numbers that have nothing in common."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _hex(numbers: npt.NDArray[np.uint64]) -> pa.Array:
    octets = np.ascontiguousarray(numbers).view(np.uint8)
    digits = np.stack([_HEX[octets >> 4], _HEX[octets & 15]], axis=2)
    return _texts(digits.reshape(len(numbers), -1), pa.string())


def _texts(cells: npt.NDArray[np.uint8], of_type: pa.DataType) -> pa.Array:
    """A row of bytes each."""
    count, width = cells.shape
    offsets = np.arange(count + 1, dtype=np.int32) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(cells))]
    return pa.Array.from_buffers(of_type, count, buffers)


def _segments(day: int, numbers: Numbers, times: Numbers) -> pa.Table:
    random = np.random.default_rng((day, int(numbers[0])))
    count = len(numbers)
    endpoints = random.integers(0, ENDPOINTS, count)
    services = endpoints % SERVICES
    instances = random.integers(0, INSTANCES, count)
    latencies = (random.lognormal(0, LATENCY_SPREAD, count) * LATENCY_MS).astype(np.int64)
    statuses = random.choice(len(STATUSES), count, p=STATUS_SHARES)
    return pa.table(
        {
            "segment_id": hex_ids(SEGMENT, day, numbers),
            "trace_id": hex_ids(TRACE, day, numbers // FAN),
            "service": _named([service_name(n) for n in range(SERVICES)], services),
            "instance": _named([f"pod-{n}" for n in range(INSTANCES)], instances),
            "endpoint": _named([endpoint_name(n) for n in range(ENDPOINTS)], endpoints),
            "minute": times // MINUTE_MS,
            "start_time": times,
            "latency": latencies,
            "is_error": statuses == len(STATUSES) - 1,
            "tags": _tags(random.integers(0, len(METHODS), count), statuses),
            "kind": np.ones(count, np.int32),
            "data_binary": _payloads(random, count),
        }
    )


def _named(names: list[str], numbers: Numbers) -> pa.Array:
    return pa.array(names).take(pa.array(numbers))


def _tags(methods: Numbers, statuses: Numbers) -> pa.ListArray:
    texts = [f"http.method={name}" for name in METHODS]
    texts += [f"http.status_code={name}" for name in STATUSES]
    both = np.stack([methods, statuses + len(METHODS)], axis=1).reshape(-1)
    offsets = np.arange(0, len(both) + 1, 2, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _named(texts, both))


def _payloads(random: np.random.Generator, count: int) -> pa.Array:
    cells = np.tile(np.frombuffer(bytes(range(250)) * 6, np.uint8), (count, 1))
    cells[:, : BYTES // 2] = random.integers(0, 256, (count, BYTES // 2), np.uint8)
    return _texts(cells, pa.binary())


def endpoint_rows(day: int, plan: SourcePlan) -> Iterator[pa.Table]:
    return rows_of(day, plan, ENDPOINT_IDS)


def rows_of(day: int, plan: SourcePlan, entities: list[str]) -> Iterator[pa.Table]:
    """A day of every entity, as storage leaves its table: the minutes of an hour and then the
    hour, the day last. A table an hour, and one of the day."""
    random = np.random.default_rng(day)
    for hour in range(24):
        at = day_bucket(day) * 100 + hour
        buckets = [*(at * 100 + minute for minute in range(60)), at]
        yield wide_rows(random, plan, entities, buckets)
    yield wide_rows(random, plan, entities, [day_bucket(day)])


def wide_rows(
    random: np.random.Generator, plan: SourcePlan, entities: list[str], buckets: list[int]
) -> pa.Table:
    count = len(entities) * len(buckets)
    columns = {
        "entity_id": _named(entities, np.tile(np.arange(len(entities)), len(buckets))),
        "time_bucket": np.repeat(np.array(buckets), len(entities)),
    }
    return pa.table({**columns, **accumulators(random, plan, count)})


def accumulators(
    random: np.random.Generator, plan: SourcePlan, count: int
) -> dict[str, pa.Array | Numbers]:
    """Every column of the source; a table of percentiles has up to ENTRIES keys."""
    return {
        one.column: _tables(random, count)
        if one.operation is Operation.BUCKETS
        else random.integers(1, NUMBER_MAX, count)
        for one in plan.accumulators
    }


def _tables(random: np.random.Generator, count: int) -> pa.MapArray:
    keys = np.sort(random.integers(0, KEYS, (count, ENTRIES)), axis=1)
    first = np.diff(keys, axis=1, prepend=-1) > 0
    offsets = np.concatenate([[0], np.cumsum(first.sum(axis=1))]).astype(np.int32)
    texts = _named([str(n) for n in range(KEYS)], keys[first])
    return pa.MapArray.from_arrays(
        pa.array(offsets), texts, pa.array(random.integers(1, 9, len(texts)))
    )

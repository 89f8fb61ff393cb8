"""Whether it takes longer to drop a day that has more in it.

Days of metrics with ten thousand rows and with more than a million, dropped in turns; the least of
each counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

import week
from figures import figure
from skyfarer.oap.core.expiry import DayTables
from skyfarer.oap.oal.plan import SourcePlan

ROUNDS: Final = 3
FEW_BUCKETS: Final = 10
TIMES_MAX: Final = 2.0
LEASE_S: Final = 600.0
ALMOST_NONE_S: Final = 0.005
"""A difference of less is that of the disk."""


class Dropping(Protocol):
    name: str
    storage: DayTables

    def store_endpoints(self, day: int, plan: SourcePlan, rows: Iterator[pa.Table]) -> None: ...

    def settle(self) -> None: ...


def few_rows(day: int, plan: SourcePlan) -> Iterator[pa.Table]:
    first = week.day_bucket(day) * 10_000
    buckets = [first + minute for minute in range(FEW_BUCKETS)]
    yield week.wide_rows(np.random.default_rng(day), plan, week.ENDPOINT_IDS, buckets)


def measure(dropping: Dropping, plan: SourcePlan) -> None:
    for number in range(ROUNDS):
        week.told(f"{dropping.name}: days to be dropped, {number + 1} of {ROUNDS}")
        few, many = 2 * number, 2 * number + 1
        dropping.store_endpoints(few, plan, few_rows(few, plan))
        dropping.store_endpoints(many, plan, week.endpoint_rows(many, plan))
    dropping.settle()
    spent = [_spent(dropping, day) for day in range(2 * ROUNDS)]
    few_s, many_s = min(spent[::2]), min(spent[1::2])
    name = f"storage_{dropping.name}_drop"
    figure(f"{name}_of_few", few_s * 1e3, f"ms, {week.ENDPOINTS * FEW_BUCKETS} rows")
    figure(f"{name}_of_many", many_s * 1e3, f"ms, {week.ENDPOINTS * (1440 + 25)} rows")
    times = max(many_s, ALMOST_NONE_S) / max(few_s, ALMOST_NONE_S)
    unit = f"of the smaller day, {ALMOST_NONE_S * 1e3:g} ms at least each"
    figure(f"{name}_times", times, unit, at_most=TIMES_MAX)


def _spent(dropping: Dropping, day: int) -> float:
    """As the keeper of data does it: under a lease, with the note that the day is gone."""
    storage = dropping.storage
    lease = storage.take_lease("benchmark", "benchmark", LEASE_S)
    assert lease is not None, "nobody else takes it"
    model = next(
        table
        for table in storage.day_tables()
        if (table.model, table.day) == ("metrics_endpoint", week.day_bucket(day))
    )
    begun_s = time.perf_counter()
    assert storage.drop(lease, model), "nobody else drops it"
    return time.perf_counter() - begun_s

"""Whether it takes longer to drop a day that has more in it.

Days of metrics with ten thousand rows and with more than a million, and days of segments with two
thousand and with a hundred thousand, dropped in turns; the least of each counts. A day goes in two
steps: it is put out of sight, which holds up batches and is held to be independent of its rows, and
then its space is given back, when nobody sees it any more. Where that removes files, it is held
against the bare removal of files of as many bytes in the same place. What happens in this process
is its CPU time, which others on the machine disturb less.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

import week
from figures import figure
from skyfarer.base.units import MIB
from skyfarer.oap.core.expiry import DayTable, DayTables, Lease
from skyfarer.oap.oal.plan import SourcePlan

ROUNDS: Final = 3
FEW_BUCKETS: Final = 10
FEW_ROWS: Final = week.ENDPOINTS * FEW_BUCKETS
MANY_ROWS: Final = week.ENDPOINTS * (1440 + 25)
FEW_SEGMENTS: Final = 2_000
MANY_SEGMENTS: Final = 100_000
TIMES_MAX: Final = 2.0
UNLINK_TIMES_MAX: Final = 2.0
LEASE_S: Final = 600.0
ALMOST_NONE_S: Final = 0.005
"""A difference of less is that of the disk."""


class Steps(DayTables, Protocol):
    """What `drop` does, one after the other."""

    def _put_out_of_sight(self, lease: Lease, table: DayTable) -> bool: ...

    def _sweep(self) -> None: ...


class Dropping(Protocol):
    name: str
    in_process: bool
    storage: Steps

    def store_segments(self, rows: pa.Table) -> None: ...

    def store_endpoints(self, day: int, plan: SourcePlan, rows: Iterator[pa.Table]) -> None: ...

    def settle(self) -> None: ...

    def files_of(self, table: str) -> tuple[Path, int]:
        """Where the files of a table are, and their bytes: 0 where it has none of its own."""


class Spent(NamedTuple):
    sight_s: float
    space_s: float
    unlink_s: float
    bytes: int


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
    _measure(dropping, "metrics_endpoint", f"storage_{dropping.name}_drop", FEW_ROWS, MANY_ROWS)


def measure_segments(
    dropping: Dropping, few: int = FEW_SEGMENTS, many: int = MANY_SEGMENTS
) -> None:
    """For a storage that drops a table with an index at once, as DuckDB does."""
    for day in range(2 * ROUNDS):
        week.told(f"{dropping.name}: segments to be dropped, {day + 1} of {2 * ROUNDS} days")
        for rows in week.segments(day, many if day % 2 else few):
            dropping.store_segments(rows)
    _measure(dropping, "segment", f"storage_{dropping.name}_drop_segments", few, many)


def _measure(dropping: Dropping, model: str, name: str, few_rows: int, many_rows: int) -> None:
    """Of days by turns, the first with few rows."""
    dropping.settle()
    spent = [_spent(dropping, model, day) for day in range(2 * ROUNDS)]
    few, many = (Spent(*map(min, zip(*some, strict=True))) for some in (spent[::2], spent[1::2]))
    days = {"few": (few_rows, few), "many": (many_rows, many)}
    _report(name, "ms of CPU" if dropping.in_process else "ms", days)


def _report(name: str, ms: str, days: Mapping[str, tuple[int, Spent]]) -> None:
    (_, few), (_, many) = days["few"], days["many"]
    for which, (rows, spent) in days.items():
        whole_ms, about = (spent.sight_s + spent.space_s) * 1e3, f"{ms}, {rows} rows"
        figure(f"{name}_of_{which}", spent.sight_s * 1e3, f"{about}, out of sight")
        figure(f"{name}_of_{which}_whole", whole_ms, f"{about}, with its space given back")
    floor = f"of the smaller day, {ALMOST_NONE_S * 1e3:g} ms at least each"
    figure(f"{name}_times", _times(many.sight_s, few.sight_s), floor, at_most=TIMES_MAX)
    whole = _times(many.sight_s + many.space_s, few.sight_s + few.space_s)
    figure(f"{name}_times_whole", whole, floor)
    if many.bytes:
        unit = f"ms, bare removal of {many.bytes // MIB} MiB"
        figure(f"{name}_unlink", many.unlink_s * 1e3, unit)
        times = _times(many.space_s, many.unlink_s)
        figure(f"{name}_space_times_unlink", times, "of the removal", at_most=UNLINK_TIMES_MAX)


def _times(one_s: float, other_s: float) -> float:
    return max(one_s, ALMOST_NONE_S) / max(other_s, ALMOST_NONE_S)


def _spent(dropping: Dropping, model: str, day: int) -> Spent:
    """As the keeper of data does it: under a lease, with the note that the day is gone."""
    storage = dropping.storage
    lease = storage.take_lease("benchmark", "benchmark", LEASE_S)
    assert lease is not None, "nobody else takes it"
    table = next(
        table
        for table in storage.day_tables()
        if (table.model, table.day) == (model, week.day_bucket(day))
    )
    directory, size = dropping.files_of(f"{table.model}_{table.day}")
    timed = partial(_timed, time.process_time if dropping.in_process else time.perf_counter)
    removal_s = timed(_removal(directory, size)) if size else 0.0
    sight_s = timed(lambda: storage._put_out_of_sight(lease, table))
    return Spent(sight_s, timed(storage._sweep), removal_s, size)


def _removal(directory: Path, size: int) -> Callable[[], None]:
    """Of a file that is on the disk, and in memory as far as the system keeps it there."""
    path, some = directory / "bare", bytes(MIB)
    with path.open("wb", buffering=0) as file:
        for _ in range(size // MIB):
            file.write(some)
        file.write(some[: size % MIB])
        os.fsync(file.fileno())
    return path.unlink


def _timed(clock_s: Callable[[], float], work: Callable[[], object]) -> float:
    begun_s = clock_s()
    work()
    return clock_s() - begun_s

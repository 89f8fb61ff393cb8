"""What it costs to merge wide rows, beside a plain insertion of the same rows.

A batch brings the rows of a source's entities in one minute; storage has three of each, with their
hour and day, and those are what the plain insertion inserts: the very table that the merge has
left, in one transaction. The source is the widest of the core definitions, CacheAccess: nine
numbers and three tables of percentiles. Every kind is measured in turns, the least of them counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

import week
from figures import figure
from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.core.storage import Analysed, Deltas, Merge, Writer
from skyfarer.oap.oal.plan import SourcePlan

WIDE: Final = "CacheAccess"
ROWS: Final = 20_000
BUCKETS: Final = 3
ENTITIES: Final = -(-ROWS // BUCKETS)
ROUNDS: Final = 7
FOLDED: Final = (1, 4, 10)
FOLD_ROUNDS: Final = 3
SMALL_ROWS: Final = 300
SMALL_ROUNDS: Final = 15
_NUMBERS: Final = ("layer", "from_layer", "component")


class Spent(NamedTuple):
    wall_s: float
    cpu_s: float


class Merging(Protocol):
    """A provider that wide rows are merged into; `plain` are its plain insertions by name, each of
    the table that the merge of WIDE has left."""

    name: str
    in_process: bool
    """All it does is CPU time of this process, which others on the machine disturb less."""
    storage: Writer

    def plain(self, stored: Deltas) -> Mapping[str, Callable[[], None]]: ...


class Folding(Merging, Protocol):
    """One that may do a part of it later; `plain_minutes` inserts the rows that a batch brings, as
    `plainly` names it."""

    plainly: str

    def fold(self) -> None: ...

    def batches_a_fold(self, rows: int) -> int:
        """How many batches of so many rows come between two folds, at one batch a second."""
        ...

    def plain_minutes(self, brought: Deltas) -> Callable[[], None]: ...

    def server_cpu_s(self) -> float:
        """That the server has used for what this storage writes."""
        ...


def timed(work: Callable[[], None]) -> Spent:
    begun = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - begun[0], time.process_time() - begun[1])


def least(spent: list[Spent]) -> Spent:
    return Spent(*map(min, zip(*spent, strict=True)))


def deltas(plan: SourcePlan, count: int, prefix: str, minute: int) -> Deltas:
    """Of so many entities, each with a value in every column."""
    random = np.random.default_rng(count)
    names = pa.array([f"{prefix}-{n:05d}.example:6379" for n in range(count)])
    columns = {
        name: pa.array(np.zeros(count, np.int32)) if name in _NUMBERS else names
        for name in ENTITY_COLUMNS
    }
    columns["detect_point"] = pa.array(["SERVER"] * count)
    columns["minute"] = pa.array(np.full(count, minute))
    columns |= week.accumulators(random, plan, count)
    return Deltas(pa.table(columns), {one.column: Merge.SUM for one in plan.accumulators})


class Batches:
    """One after the other, as the pipeline brings them."""

    def __init__(self, storage: Writer) -> None:
        self._storage = storage
        self._next = storage.applied("merging")
        self._no_segments = next(week.segments(0, 1)).slice(0, 0)

    def apply(self, metrics: Mapping[str, Deltas]) -> None:
        first, self._next = self._next, self._next + 1
        self._storage.apply(Analysed("merging", first, self._next, self._no_segments, metrics))


def rounds(merging: Merging, plan: SourcePlan, between: Callable[[], None]) -> dict[str, Spent]:
    batches, minute = Batches(merging.storage), week.minute_of(0)
    stored = deltas(plan, ENTITIES, "known", minute)
    batches.apply({WIDE: stored})
    plain = merging.plain(stored)
    spent: dict[str, list[Spent]] = {}
    for number in range(ROUNDS):
        new = deltas(plan, ENTITIES, f"new-{number}", minute)
        for name, work in plain.items():
            spent.setdefault(name, []).append(timed(work))
        for name, rows in (("stored", stored), ("new", new)):
            work = partial(batches.apply, {WIDE: rows})
            spent.setdefault(name, []).append(timed(work))
        between()
    return {name: least(some) for name, some in spent.items()}


def measure(
    merging: Merging,
    plan: SourcePlan,
    times_max: float,
    between: Callable[[], None] = lambda: None,
) -> None:
    """The first plain insertion is the one that the goal is of. `between` two rounds is what a
    storage does later, which `folding` measures."""
    spent = rounds(merging, plan, between)
    merges = {name: spent.pop(name) for name in ("new", "stored")}
    of = f"{ENTITIES * BUCKETS} rows of {WIDE}"
    for name, one in (*spent.items(), *merges.items()):
        figure(f"storage_{merging.name}_{_slug(name)}", one.wall_s * 1e3, f"ms, {of}")
    for number, (plain, one) in enumerate(spent.items()):
        for name, merged in merges.items():
            wall, cpu = merged.wall_s / one.wall_s, merged.cpu_s / one.cpu_s
            inside = merging.in_process
            figure(
                f"storage_{merging.name}_{name}_times_{_slug(plain)}",
                cpu if inside else wall,
                f"of {plain}, CPU; by the clock {wall:.2f}" if inside else f"of {plain}",
                at_most=None if number else times_max,
            )


def folding(merging: Folding, plan: SourcePlan, times_max: float) -> None:
    """What a batch costs with its part of what is done in the background: of one batch by itself,
    the worst there is, and of as many as come between two turns, which has the goal."""
    batches, minute = Batches(merging.storage), week.minute_of(0)
    stored = deltas(plan, ENTITIES, "known", minute)
    (copy, *_), spent = merging.plain(stored).values(), dict[int, list[Spent]]()
    as_set = merging.batches_a_fold(ENTITIES)
    figure(f"storage_{merging.name}_batches_a_fold", as_set, f"as it is set, {ENTITIES} rows each")
    copied = []
    for _ in range(FOLD_ROUNDS):
        copied.append(timed(copy))
        for count in sorted({*FOLDED, as_set}):
            applied = [timed(partial(batches.apply, {WIDE: stored})) for _ in range(count)]
            folded = timed(merging.fold)
            wall_s = sum(one.wall_s for one in (*applied, folded)) / count
            cpu_s = sum(one.cpu_s for one in (*applied, folded)) / count
            spent.setdefault(count, []).append(Spent(wall_s, cpu_s))
    for count, some in spent.items():
        whole = least(some)
        name = f"storage_{merging.name}_with_folding_of_{count}"
        unit = f"ms a batch, {ENTITIES * BUCKETS} rows of {WIDE}; CPU {whole.cpu_s * 1e3:.0f}"
        figure(name, whole.wall_s * 1e3, unit)
        goal = times_max if count == as_set else None
        figure(f"{name}_times", whole.wall_s / least(copied).wall_s, "of bare COPY", at_most=goal)


def brought(merging: Folding, plan: SourcePlan, times_max: float) -> None:
    """A batch that brings as many rows as `measure` leaves, beside an insertion of those alone,
    without their hours and days; by the clock and by the CPU of all who take part. A storage that
    folds does so after as many batches as it is set to: their part of it is a figure of its own."""
    batches, minute = Batches(merging.storage), week.minute_of(0)
    rows = deltas(plan, ROWS, "many", minute)
    copy, apply = merging.plain_minutes(rows), partial(batches.apply, {WIDE: rows})
    copied, applied, folded = list[Spent](), list[Spent](), list[Spent]()
    as_set = merging.batches_a_fold(ROWS)
    for _ in range(ROUNDS):
        copied.append(_on_both_sides(merging, copy))
        applied.extend(_on_both_sides(merging, apply) for _ in range(as_set))
        folded.append(_on_both_sides(merging, merging.fold))
    name = f"storage_{merging.name}_brought"
    figure(name, least(applied).wall_s * 1e3, f"ms, {ROWS} entities of {WIDE} in one batch")
    times, cpu = (one / other for one, other in zip(least(applied), least(copied), strict=True))
    of = f"of {merging.plainly} of {ROWS} rows of minutes"
    figure(f"{name}_times", times, f"{of}, by the clock", at_most=times_max)
    figure(
        f"{name}_times_cpu",
        cpu,
        f"{of}, CPU",
        at_most=times_max if merging.in_process else None,
    )
    if not merging.in_process:
        whole_s = least(applied).wall_s + least(folded).wall_s / as_set
        unit = f"{of}, by the clock, {as_set} batches a fold as it is set"
        figure(f"{name}_with_folding_times", whole_s / least(copied).wall_s, unit)


def _on_both_sides(merging: Folding, work: Callable[[], None]) -> Spent:
    before_s = merging.server_cpu_s()
    spent = timed(work)
    return Spent(spent.wall_s, spent.cpu_s + merging.server_cpu_s() - before_s)


def _slug(name: str) -> str:
    return name.replace(" ", "_")


def small(merging: Merging, plans: list[SourcePlan]) -> None:
    """A batch as the pipeline has it every second: few rows of many sources, all stored."""
    batches = Batches(merging.storage)
    metrics = {plan.source: deltas(plan, SMALL_ROWS, "small", week.minute_of(0)) for plan in plans}
    spent = least([timed(lambda: batches.apply(metrics)) for _ in range(SMALL_ROUNDS)])
    unit = f"ms, {len(plans)} sources of {SMALL_ROWS} rows; CPU {spent.cpu_s * 1e3:.0f}"
    figure(f"storage_{merging.name}_small_merge", spent.wall_s * 1e3, unit)

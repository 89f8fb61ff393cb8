"""What storage costs: row groups, the merge of wide rows, reading a week of data, reading while it
is written to, dropping a day.

--only groups|merge|read|wait|drop   one part instead of all
--on duckdb|postgresql               one storage instead of both
--days, --segments                   a smaller week: 7 days of 200,000 segments of 1.5 KB, with the
                                     minutes, hours and days of 1,000 endpoints, unless told
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import storage_dropping
import storage_merging
import storage_reading
import storage_row_groups
import storage_waiting
import week
from figures import figure
from skyfarer.oap.core.entities import ENTITIES
from skyfarer.oap.oal.compiler import compile_texts, shipped
from skyfarer.oap.oal.plan import SourcePlan
from storage_embedded import Embedded
from storage_postgresql import Postgres

MERGE_MAX = {"duckdb": 1.5, "postgresql": 2.0}
SMALL_SOURCES = 12


@contextmanager
def opened(name: str) -> Iterator[Embedded | Postgres]:
    with tempfile.TemporaryDirectory() as scratch:
        storage = Postgres() if name == "postgresql" else Embedded(Path(scratch))
        try:
            yield storage
        finally:
            storage.stop()


def plans() -> dict[str, SourcePlan]:
    compiled = compile_texts(shipped())
    return {plan.source: plan for plan in compiled.plan.sources if plan.source in ENTITIES}


def merge(name: str) -> None:
    known = plans()
    with opened(name) as storage:
        wide = known[storage_merging.WIDE]
        if isinstance(storage, Postgres):
            storage_merging.measure(storage, wide, MERGE_MAX[name], storage.fold)
            storage_merging.folding(storage, wide, MERGE_MAX[name])
        else:
            storage_merging.measure(storage, wide, MERGE_MAX[name])
        storage_merging.brought(storage, wide, MERGE_MAX[name])
        storage_merging.small(storage, list(known.values())[:SMALL_SOURCES])


def read(name: str, days: int, segments: int) -> None:
    plan = plans()["Endpoint"]
    with opened(name) as storage:
        for day in range(days):
            week.told(f"{name}, day {day + 1} of {days}: {segments} segments")
            for rows in week.segments(day, segments):
                storage.store_segments(rows)
            week.told(f"{name}, day {day + 1} of {days}: {week.ENDPOINTS} endpoints")
            storage.store_endpoints(day, plan, week.endpoint_rows(day, plan))
        week.told(f"{name}: asking")
        storage.settle()
        storage_reading.measure(storage, days, segments)


def wait(name: str) -> None:
    with opened(name) as storage:
        storage_waiting.measure(storage)


def drop(name: str) -> None:
    with opened(name) as storage:
        storage_dropping.measure(storage, plans()["Endpoint"])
        if isinstance(storage, Embedded):
            storage_dropping.measure_segments(storage)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--days", type=int, default=7)
    options.add_argument("--segments", type=int, default=200_000, help="of a day")
    options.add_argument("--on", choices=MERGE_MAX, help="one storage instead of both")
    parts: dict[str, Callable[[str], None]] = {
        "merge": merge,
        "read": lambda name: read(name, given.days, given.segments),
        "wait": wait,
        "drop": drop,
    }
    options.add_argument("--only", choices=["groups", *parts], help="one part instead of all")
    given = options.parse_args()
    if given.only in (None, "groups") and given.on != "postgresql":
        storage_row_groups.measure()
    for part in [given.only] if given.only in parts else [] if given.only else parts:
        for name in [given.on] if given.on else MERGE_MAX:
            week.told(f"{part} on {name}")
            attempt(part, name, parts[part])


def attempt(part: str, name: str, measured: Callable[[str], None]) -> None:
    """A storage that is not there fails its figures; it is not left out."""
    try:
        measured(name)
    except FileNotFoundError as missing:
        week.told(f"{name}: {missing}")
        figure(f"storage_{name}_{part}", 0, f"nothing: {missing}", at_least=1)


if __name__ == "__main__":
    main()

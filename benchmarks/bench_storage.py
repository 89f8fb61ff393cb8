"""What storage costs: row groups, the merge of wide rows, reading a week of data, dropping a day.

--only groups|merge|read|drop   one part instead of all
--days, --segments              a smaller week: 7 days of 200,000 segments of 1.5 KB, and the
                                minutes, hours and days of 1,000 endpoints, unless told
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import storage_merging
import storage_reading
import storage_row_groups
import week
from figures import figure
from skyfarer.oap.core.entities import ENTITIES
from skyfarer.oap.oal.compiler import compile_texts, shipped
from skyfarer.oap.oal.plan import SourcePlan
from storage_embedded import Embedded
from storage_merging import WIDE

MERGE_MAX = 1.5
SMALL_SOURCES = 12


def told(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def plans() -> dict[str, SourcePlan]:
    compiled = compile_texts(shipped())
    return {plan.source: plan for plan in compiled.plan.sources if plan.source in ENTITIES}


def merge() -> None:
    known = plans()
    with tempfile.TemporaryDirectory() as scratch:
        embedded = Embedded(Path(scratch))
        spent = storage_merging.rounds(embedded, known[WIDE])
        plain, as_stored = spent["plain"], spent["plain as stored"]
        rows = storage_merging.ENTITIES * storage_merging.BUCKETS
        figure("storage_duckdb_insert", plain.cpu_s * 1e3, f"ms of CPU, {rows} rows with MAPs")
        figure("storage_duckdb_insert_as_stored", as_stored.cpu_s * 1e3, "ms of CPU, with lists")
        for name in ("new", "stored"):
            merged = spent[name]
            unit = f"of a plain INSERT of the same Arrow table, CPU; all rows {name}"
            figure(f"storage_duckdb_merge_{name}", merged.cpu_s * 1e3, "ms of CPU")
            figure(
                f"storage_duckdb_merge_{name}_times",
                merged.cpu_s / plain.cpu_s,
                unit,
                at_most=MERGE_MAX,
            )
            figure(
                f"storage_duckdb_merge_{name}_wall_times",
                merged.wall_s / plain.wall_s,
                "the same of the clock",
                at_most=MERGE_MAX,
            )
            figure(
                f"storage_duckdb_merge_{name}_times_as_stored",
                merged.cpu_s / as_stored.cpu_s,
                "of an INSERT of rows that have lists already, CPU",
            )
        storage_merging.small(embedded, list(known.values())[:SMALL_SOURCES])
        embedded.stop()


def read(days: int, segments: int) -> None:
    plan = plans()["Endpoint"]
    with tempfile.TemporaryDirectory() as scratch:
        embedded = Embedded(Path(scratch))
        for day in range(days):
            told(f"day {day + 1} of {days}: {segments} segments, {week.ENDPOINTS} endpoints")
            for rows in week.segments(day, segments):
                embedded.store_segments(rows)
            embedded.store_endpoints(day, plan)
        told("asking")
        storage_reading.measure(embedded, days, segments)
        embedded.stop()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--days", type=int, default=7)
    options.add_argument("--segments", type=int, default=200_000, help="of a day")
    parts = {
        "groups": storage_row_groups.measure,
        "merge": merge,
        "read": lambda: read(given.days, given.segments),
    }
    options.add_argument("--only", choices=parts, help="one part instead of all")
    given = options.parse_args()
    for name in [given.only] if given.only else parts:
        told(name)
        parts[name]()


if __name__ == "__main__":
    main()

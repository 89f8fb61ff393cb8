"""What became of the records of a batch: one thing each, or the ledger would not balance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.storage import Analysed, Parked
from skyfarer.oap.pipeline.times import EXPIRED

Unsound: TypeAlias = tuple[int, int, str]
"""Sequence, kind and reason of a record."""


def checked_end(rows: pa.Table, first: int) -> int:
    """The batch must be exactly the records first … end: a gap would be a silent loss.

    Every record has one row with part 0, whatever else it has.
    """
    sequences = rows["sequence"].filter(pc.equal(rows["part"], 0))
    end = int(pc.max(sequences).as_py()) + 1
    if len(sequences) != end - first or pc.min(sequences).as_py() != first:
        raise PermanentError(
            f"the batch holds {len(sequences)} records where {first}…{end - 1} were expected: "
            "stored offsets and queue do not belong together"
        )
    return end


def unsound(rows: pa.Table) -> list[Unsound]:
    """Of each record that is not analysed: the reason of its first bad row."""
    bad = rows.filter(pc.is_valid(rows["reason"]))
    found = bad.group_by(["sequence", "kind"], use_threads=False).aggregate([("reason", "first")])
    columns = (found[name].to_pylist() for name in ("sequence", "kind", "reason_first"))
    return list(zip(*columns, strict=True))


def told_apart(bad: Sequence[Unsound]) -> tuple[list[Unsound], list[int]]:
    """Those to park, and the numbers of those that have only come too late."""
    expired = [sequence for sequence, _, reason in bad if reason.startswith(EXPIRED)]
    return [one for one in bad if not one[2].startswith(EXPIRED)], expired


def duplicates_among(stored: pa.Table, repeated: pa.Table, otherwise: Iterable[int]) -> int:
    """How many records held nothing but what was stored before. `otherwise` are the numbers of
    those whose outcome is another one."""
    if not repeated.num_rows:
        return 0
    others = {*otherwise, *stored["sequence"].to_pylist()}
    return len(set(repeated["sequence"].to_pylist()) - others)


def code(record: Parked) -> str:
    """The word of the ledger that a reason begins with."""
    return record.reason.partition(":")[0]


def rows_of(batch: Analysed) -> dict[str, int]:
    """How many rows it hands to storage, by what they are; parked records are counted elsewhere."""
    tables = {
        "slow": batch.slow,
        "log": batch.logs,
        "event": batch.events,
        "record": batch.records,
    }
    return {
        "segment": batch.segments.num_rows,
        "metrics": sum(deltas.rows.num_rows for deltas in batch.metrics.values()),
        **{what: 0 if rows is None else rows.num_rows for what, rows in tables.items()},
        "inventory": len(batch.inventories),
        "heartbeat": len(batch.heartbeats),
    }

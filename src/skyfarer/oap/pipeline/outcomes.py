"""What became of the records of a batch: one thing each, or the ledger would not balance."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.storage import Analysed, Parked


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


def unsound(rows: pa.Table) -> list[tuple[int, int, str]]:
    """(sequence, kind, reason) of each record that is parked: the reason of its first bad row."""
    bad = rows.filter(pc.is_valid(rows["reason"]))
    found = bad.group_by(["sequence", "kind"], use_threads=False).aggregate([("reason", "first")])
    columns = (found[name].to_pylist() for name in ("sequence", "kind", "reason_first"))
    return list(zip(*columns, strict=True))


def duplicates_among(stored: pa.Table, repeated: pa.Table, parked: Sequence[Parked]) -> int:
    """How many records held nothing but what was stored before."""
    if not repeated.num_rows:
        return 0
    otherwise = {record.sequence for record in parked}
    otherwise.update(stored["sequence"].to_pylist())
    return len(set(repeated["sequence"].to_pylist()) - otherwise)


def code(record: Parked) -> str:
    """The word of the ledger that a reason begins with."""
    return record.reason.partition(":")[0]


def rows_of(batch: Analysed) -> dict[str, int]:
    """How many rows it hands to storage, by what they are; parked records are counted elsewhere."""
    return {
        "segment": batch.segments.num_rows,
        "metrics": sum(deltas.num_rows for deltas in batch.metrics.values()),
        "record": 0 if batch.records is None else batch.records.num_rows,
        "inventory": len(batch.inventories),
        "heartbeat": len(batch.heartbeats),
    }

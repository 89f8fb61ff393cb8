"""A run of the queue as rows for Spark: one row a record, always.

    sequence  the record's number in the queue
    kind      what it is (wire.rpc.Kind)
    reason    null, or why it cannot be analysed: such a record is parked, and stops nothing
    segment, properties, ping, …   the decoded message, in the column of its shape; the others null

Payloads of a segment file lie back to back, so a run becomes an Arrow array of binaries over the
mapped file itself, with no copy and no Python loop over its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.pipeline.sources.decode import DECODERS, Decoder, decode
from skyfarer.oap.pipeline.sources.shapes import SHAPES
from skyfarer.queue.run import CORRUPT, OVERFLOW, Run

# A reason begins with its code, the label under which the ledger counts it.
DAMAGED = {
    CORRUPT: f"{CORRUPT}: its checksum fails, or its file was damaged",
    OVERFLOW: f"{OVERFLOW}: overwritten before it was read",
}
UNDECODABLE = "undecodable"
INCOMPLETE = "incomplete: needs "
UNKNOWN_KIND = "unknown_kind"

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_INDEX = np.dtype(
    [("start", "<u4"), ("length", "<u4"), ("kind", "<u4"), ("crc", "<u4"), ("check", "<u4")]
)
_ENVELOPE = (
    pa.field("sequence", pa.int64()),
    pa.field("kind", pa.int32()),
    pa.field("reason", pa.string()),
)


@cache
def decoders(name: str) -> Mapping[int, Decoder]:
    return {kind: DECODERS[name](shape) for kind, shape in SHAPES.items()}


@cache
def row_schema() -> pa.Schema:
    """The same for every decoder: the suite both pass says so."""
    by_kind = decoders("ptars")
    columns = [
        pa.field(shape.column, pa.struct(list(by_kind[kind].schema)))
        for kind, shape in SHAPES.items()
    ]
    return pa.schema([*_ENVELOPE, *columns])


def rows(run: Run, decoder: str = "ptars") -> Iterator[pa.RecordBatch]:
    """The run's rows, grouped by kind; inside a kind the bad ones come last."""
    index = np.frombuffer(run.index, dtype=_INDEX)
    sound = np.ones(len(index), dtype=bool)
    if run.damaged:
        yield _damaged(run, index)
        if not len(index):
            return
        sound[np.asarray(run.damaged) - run.first] = False
    sequences = np.arange(run.first, run.end, dtype=np.int64)
    for kind in np.unique(index["kind"][sound]).tolist():
        chosen = sound & (index["kind"] == kind)
        yield from _rows_of(kind, sequences[chosen], binaries(run, chosen), decoder)


def binaries(run: Run, chosen: Mask) -> pa.BinaryArray:
    """The chosen payloads; over the mapped file itself where they are all of an unbroken run."""
    index = np.frombuffer(run.index, dtype=_INDEX)
    if run.damaged:
        data, entries = run.data, index[chosen].tolist()
        return pa.array([bytes(data[at : at + size]) for at, size, *_ in entries], pa.binary())
    last_end = int(index["start"][-1]) + int(index["length"][-1])
    offsets = np.append(index["start"], np.uint32(last_end)).astype("<i4")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(run.data)]
    whole = pa.Array.from_buffers(pa.binary(), len(index), buffers)
    return whole if chosen.all() else whole.filter(pa.array(chosen))


def _damaged(run: Run, index: npt.NDArray[np.void]) -> pa.RecordBatch:
    """Of a lost run nothing is known but its numbers."""
    sequences = np.asarray(run.damaged, dtype=np.int64)
    kinds = index["kind"][sequences - run.first] if len(index) else np.zeros(len(sequences))
    return _parked(sequences, kinds, [DAMAGED[run.reason]] * len(sequences))


def _rows_of(
    kind: int,
    sequences: Numbers,
    payloads: pa.BinaryArray,
    decoder: str,
) -> Iterator[pa.RecordBatch]:
    if kind not in SHAPES:
        reason = f"{UNKNOWN_KIND}: {kind} is not analysed by this version"
        yield _parked(sequences, np.full(len(sequences), kind), [reason] * len(sequences))
        return
    batches, bad = decode(decoders(decoder)[kind], payloads)
    good = np.ones(len(sequences), dtype=bool)
    good[list(bad)] = False
    at, good_sequences = 0, sequences[good]
    for batch in batches:
        yield _decoded(kind, good_sequences[at : at + batch.num_rows], batch)
        at += batch.num_rows
    if bad:
        reasons = [f"{UNDECODABLE}: {bad[position]}" for position in sorted(bad)]
        yield _parked(sequences[~good], np.full(len(bad), kind), reasons)


def _decoded(kind: int, sequences: Numbers, batch: pa.RecordBatch) -> pa.RecordBatch:
    shape = SHAPES[kind]
    message = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    reason = _incomplete(batch, shape.required)
    return _assemble(sequences, np.full(len(sequences), kind), reason, {shape.column: message})


def _incomplete(batch: pa.RecordBatch, required: tuple[str, ...]) -> pa.StringArray:
    """Bytes that happen to parse but say nothing: null where every required field is there."""
    lacking = pa.array(np.zeros(batch.num_rows, dtype=bool))
    for name in required:
        column = batch[name]
        size = pc.binary_length if pa.types.is_string(column.type) else pc.list_value_length
        lacking = pc.or_(lacking, pc.equal(size(column), 0))
    reason = INCOMPLETE + ", ".join(required)
    return pc.if_else(lacking, pa.scalar(reason), pa.scalar(None, pa.string()))


def _parked(
    sequences: Numbers,
    kinds: npt.NDArray[Any],
    reasons: list[str],
) -> pa.RecordBatch:
    return _assemble(sequences, kinds, pa.array(reasons, pa.string()), {})


def _assemble(
    sequences: Numbers,
    kinds: npt.NDArray[Any],
    reason: pa.StringArray,
    message: Mapping[str, pa.StructArray],
) -> pa.RecordBatch:
    schema, count = row_schema(), len(sequences)
    columns = [pa.array(sequences), pa.array(kinds.astype(np.int32)), reason]
    columns += [
        message[field.name] if field.name in message else pa.nulls(count, field.type)
        for field in list(schema)[len(_ENVELOPE) :]
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

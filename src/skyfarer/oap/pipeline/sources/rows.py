"""A run of the queue as rows for Spark: a row for every record, always.

    sequence  the record's number in the queue
    part      0; an OTLP export has a row for each span or log in it, and this is its number there
    kind      what it is (wire.rpc.Kind)
    reason    null, or why it cannot be analysed: such a record is parked, and stops nothing
    told      null; in the first row of a batch of them what the driver is told of all (`told`)
    segment   the decoded message, if it is one, without what is only told
    reports   of a message that is a measurement: the rows of sources that it became
    others    a message that is rare, under the name of its shape (`shapes.OTHERS`)

A kind that no shape speaks of is not decoded: its row says only that the record is there. Of some
that are decoded the driver is told all that is wanted, and their rows say no more either.

Payloads of a segment file lie back to back, so a run becomes an Arrow array of binaries over the
mapped file itself, with no copy and no Python loop over its records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.pipeline.sources.bombs import OVERSIZE, bombs_among
from skyfarer.oap.pipeline.sources.bounds import Bounds
from skyfarer.oap.pipeline.sources.decode import Decoder, decode
from skyfarer.oap.pipeline.sources.exports import Cut, cut
from skyfarer.oap.pipeline.sources.halving import halved
from skyfarer.oap.pipeline.sources.narrowing import narrowed, without
from skyfarer.oap.pipeline.sources.nested import decoder_of
from skyfarer.oap.pipeline.sources.reports import REPORTS, TYPE, reports_of
from skyfarer.oap.pipeline.sources.shapes import OTHERS, SHAPES, TIME_MS_MAX, Shape
from skyfarer.oap.pipeline.sources.shapes import REPORTS as REPORTED
from skyfarer.oap.pipeline.told import Telling, carried, told_of
from skyfarer.queue.run import CORRUPT, OVERFLOW, Run
from skyfarer.wire.rpc import Kind

# A reason begins with its code, the label under which the ledger counts it.
DAMAGED = {
    CORRUPT: f"{CORRUPT}: its checksum fails, or its file was damaged",
    OVERFLOW: f"{OVERFLOW}: overwritten before it was read",
}
UNDECODABLE = "undecodable"
INCOMPLETE = "incomplete: needs "
IMPLAUSIBLE = f"implausible: a time before 1970, or above {TIME_MS_MAX} ms since then"
UNKNOWN_KIND = "unknown_kind"

EXPORTS = (int(Kind.OTLP_TRACES), int(Kind.OTLP_LOGS))
"""Kinds whose records are cut into parts."""
_STORED_TOO = {Kind.BROWSER_ERROR, Kind.METER, Kind.METER_COLLECTION}
STORED = (frozenset(Kind) - {Kind.NONE} - SHAPES.keys()) | _STORED_TOO
"""Kinds that are stored as they came: those that nothing analyses, and what says more than its
metrics do (the text of an error, labels and histograms)."""

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

INDEX = np.dtype(
    [("start", "<u4"), ("length", "<u4"), ("kind", "<u4"), ("crc", "<u4"), ("check", "<u4")]
)
_ENVELOPE = (
    pa.field("sequence", pa.int64()),
    pa.field("part", pa.int32()),
    pa.field("kind", pa.int32()),
    pa.field("reason", pa.string()),
    pa.field("told", pa.binary()),
)


@cache
def decoders(name: str) -> Mapping[int, Decoder]:
    return {kind: decoder_of(kind, name) for kind in SHAPES}


@cache
def row_schema() -> pa.Schema:
    """The same for every decoder: the suite both pass says so."""
    columns, others = dict[str, pa.DataType](), dict[str, pa.DataType]()
    for kind, decoder in decoders("ptars").items():
        shape, message = SHAPES[kind], pa.struct(list(decoder.schema))
        if shape.column is None:
            continue
        if shape.rare:
            others[shape.column] = _at_most_one(message)
        else:
            columns[shape.column] = TYPE if kind in REPORTS else without(message, shape.told)
    columns[OTHERS] = _at_most_one(pa.struct(others.items()))
    return pa.schema([*_ENVELOPE, *(pa.field(*column) for column in columns.items())])


def _at_most_one(of: pa.StructType) -> pa.ListType:
    return pa.list_(pa.field("element", of, nullable=False))


def segment_schema() -> pa.Schema:
    """Of a whole segment: the column's, and what is only told."""
    return decoders("ptars")[Kind.SEGMENT].schema


@dataclass(frozen=True)
class Reading:
    """How runs are read.

    `decoders`: names, in the order in which they are asked: each next one about what those before
    it refuse. `telling`: what decides what the driver is told. `quarantined`: sequence → reason of
    the records that no decoder may see. `entrusted`: the records that the first decoder may not
    see. `bounds`: of a process that reads.
    """

    decoders: tuple[str, ...] = ("ptars", "protobuf")
    telling: Telling = field(default_factory=Telling)
    quarantined: Mapping[int, str] = field(default_factory=dict)
    entrusted: frozenset[int] = frozenset()
    bounds: Bounds = field(default_factory=Bounds)

    @classmethod
    def read(cls, text: str) -> Reading:
        """The Reading that `written` gave."""
        read = json.loads(text)
        return cls(
            tuple(read["decoders"]),
            Telling.read(read["telling"]),
            {int(sequence): why for sequence, why in read["quarantined"].items()},
            frozenset(read["entrusted"]),
            Bounds(**read["bounds"]),
        )

    def written(self) -> str:
        return json.dumps(
            {
                "decoders": self.decoders,
                "telling": self.telling.written(),
                "quarantined": dict(self.quarantined),
                "entrusted": sorted(self.entrusted),
                "bounds": asdict(self.bounds),
            }
        )

    def of_entrusted(self) -> Reading:
        return replace(self, decoders=self.decoders[1:], entrusted=frozenset())


def rows(run: Run, reading: Reading) -> Iterator[pa.RecordBatch]:
    """The run's rows, grouped by kind; inside a kind the bad ones come last."""
    index = np.frombuffer(run.index, dtype=INDEX)
    sound = np.ones(len(index), dtype=bool)
    if run.damaged:
        yield _damaged(run, index)
        if not len(index):
            return
        sound[np.asarray(run.damaged) - run.first] = False
    held = _places(run, sound, reading.quarantined)
    if len(held):
        sound[held] = False
        reasons = [reading.quarantined[n] for n in (held + run.first).tolist()]
        yield _assemble(held + run.first, index["kind"][held], reasons)
    entrusted = np.zeros(len(index), dtype=bool)
    entrusted[_places(run, sound, reading.entrusted)] = True
    for chosen, how in ((sound & ~entrusted, reading), (entrusted, reading.of_entrusted())):
        yield from _by_kind(run, index, chosen, how)


def _places(run: Run, sound: Mask, sequences: Iterable[int]) -> Numbers:
    """The places in the run of these records, without damaged ones."""
    here = [n - run.first for n in sequences if run.first <= n < run.end]
    places = np.asarray(sorted(here), dtype=np.int64)
    return places[sound[places]]


def _by_kind(
    run: Run, index: npt.NDArray[np.void], among: Mask, reading: Reading
) -> Iterator[pa.RecordBatch]:
    sequences = np.arange(run.first, run.end, dtype=np.int64)
    for kind in np.unique(index["kind"][among]).tolist():
        chosen = among & (index["kind"] == kind)
        yield from _rows_of(kind, sequences[chosen], binaries(run, chosen), reading)


def binaries(run: Run, chosen: Mask) -> pa.BinaryArray:
    """The chosen payloads; over the mapped file itself where they are all of an unbroken run."""
    index = np.frombuffer(run.index, dtype=INDEX)
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
    return _assemble(sequences, kinds, [DAMAGED[run.reason]] * len(sequences))


def _rows_of(
    kind: int, sequences: Numbers, payloads: pa.BinaryArray, reading: Reading
) -> Iterator[pa.RecordBatch]:
    if kind in EXPORTS:
        for chunk in cut(sequences.tolist(), payloads):
            yield from _parts(kind, chunk, reading)
    elif kind in SHAPES:
        yield from _decoded(kind, sequences, payloads, reading)
    else:
        unknown = f"{UNKNOWN_KIND}: {kind} is no kind of record that this version knows"
        reason = None if kind in STORED else unknown
        yield _assemble(sequences, kind, [reason] * len(sequences))


def _parts(kind: int, chunk: Cut, reading: Reading) -> Iterator[pa.RecordBatch]:
    """The parts, and a row for every export that was not cut into any."""
    parts = pa.array(chunk.parts, pa.binary())
    numbers = np.asarray(chunk.numbers, dtype=np.int32)
    yield from _decoded(kind, np.asarray(chunk.sequences, np.int64), parts, reading, numbers)
    uncut = {**dict.fromkeys(chunk.empty), **chunk.bad}
    if uncut:
        yield _assemble(np.asarray([*uncut], np.int64), kind, [*uncut.values()])


def _decoded(
    kind: int,
    sequences: Numbers,
    payloads: pa.BinaryArray,
    reading: Reading,
    parts: npt.NDArray[np.int32] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Good rows in order, then the bad ones. Where there are parts, each keeps its bytes.

    A record is also bad where its fields can be read and no row can be made of them.
    """

    def made(start: int, end: int) -> list[pa.RecordBatch]:
        some = slice(start, end)
        return _made(
            *(kind, sequences[some], payloads[some], reading),
            parts if parts is None else parts[some],
        )

    done, bad = halved(len(payloads), made)
    for _, batches in done:
        yield from batches
    if bad:
        yield _bad(kind, sequences, {at: f"{UNDECODABLE}: {why}" for at, why in bad.items()}, parts)


def _made(
    kind: int,
    sequences: Numbers,
    payloads: pa.BinaryArray,
    reading: Reading,
    parts: npt.NDArray[np.int32] | None,
) -> list[pa.RecordBatch]:
    batches, bad = _sound(kind, payloads, reading.decoders)
    good = np.delete(np.arange(len(payloads)), list(bad))
    made = []
    for batch in batches:
        columns = _columns(kind, batch)
        told = told_of(kind, batch, columns.get(REPORTED), reading.telling)
        if parts is not None:
            told |= {"part": pa.array(parts[good]), "data": payloads.take(pa.array(good))}
        reasons = _reasons(batch, SHAPES[kind])
        made.append(_assemble(sequences[good], kind, reasons, columns, told))
    return [*made, _bad(kind, sequences, bad, parts)] if bad else made


def _bad(
    kind: int,
    sequences: Numbers,
    bad: Mapping[int, str],
    parts: npt.NDArray[np.int32] | None,
) -> pa.RecordBatch:
    """The rows of bad records, whose reasons are given by their positions."""
    here = np.asarray(sorted(bad))
    told = {} if parts is None else {"part": pa.array(parts[here])}
    return _assemble(sequences[here], kind, [bad[at] for at in here.tolist()], told=told)


def _sound(
    kind: int, payloads: pa.BinaryArray, names: Sequence[str]
) -> tuple[list[pa.RecordBatch], dict[int, str]]:
    """The rows of the sound payloads, as `decode` has them, and position → reason of the others."""
    bombs = bombs_among(kind, payloads)
    others = np.delete(np.arange(len(payloads)), bombs)
    taken = payloads.take(pa.array(others)) if bombs else payloads
    batches, bad = decode([partial(_decoder, name, kind) for name in names], taken)
    refused = {int(others[at]): f"{UNDECODABLE}: {why}" for at, why in bad.items()}
    return batches, refused | dict.fromkeys(bombs, OVERSIZE)


def _decoder(name: str, kind: int) -> Decoder:
    return decoders(name)[kind]


def _columns(kind: int, batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The column that has what these messages say, if any has."""
    shape = SHAPES[kind]
    if shape.column is None:
        return {}
    if kind in REPORTS:
        return {shape.column: reports_of(kind, batch)}
    message = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    if not shape.rare:
        return {shape.column: narrowed(message, row_schema().field(shape.column).type)}
    form = row_schema().field(OTHERS).type
    places = form.value_type
    found = [
        _lists_of(message, one.type) if one.name == shape.column else _nulls(len(message), one.type)
        for one in places
    ]
    return {OTHERS: _lists_of(pa.StructArray.from_arrays(found, fields=list(places)), form)}


def _lists_of(each: pa.Array, form: pa.ListType) -> pa.ListArray:
    """A list of each one alone."""
    return pa.ListArray.from_arrays(
        pa.array(np.arange(len(each) + 1, dtype=np.int32)), each, type=form
    )


def _reasons(batch: pa.RecordBatch, shape: Shape) -> pa.StringArray:
    """Bytes that happen to parse but say nothing, or what cannot be: null where all is well."""
    lacking = pa.array(np.zeros(batch.num_rows, dtype=bool))
    for name in shape.required:
        lacking = pc.or_(lacking, _lacks(batch[name]))
    incomplete = INCOMPLETE + ", ".join(shape.required)
    reasons = pc.if_else(lacking, pa.scalar(incomplete), pa.scalar(None, pa.string()))
    for path, most in shape.times.items():
        strange = _outside(batch, path, most)
        if len(strange):
            mask = np.isin(np.arange(batch.num_rows), strange)
            reasons = pc.coalesce(reasons, pc.if_else(pa.array(mask), IMPLAUSIBLE, None))
    return reasons


def _outside(batch: pa.RecordBatch, path: str, most: int) -> Numbers:
    """The rows in which that time, in any element of its list, is out of bounds."""
    first, *rest = path.split(".")
    times, places = batch[first], np.arange(batch.num_rows)
    for name in rest:
        if pa.types.is_list(times.type):
            places = places[pc.list_parent_indices(times).to_numpy()]
            times = pc.list_flatten(times)
        times = pc.struct_field(times, name)
    bounds = pc.min_max(times).as_py()
    if bounds["min"] is None or (bounds["min"] >= 0 and bounds["max"] <= most):
        return np.empty(0, dtype=np.int64)
    bad = pc.fill_null(pc.or_(pc.less(times, 0), pc.greater(times, most)), False)
    found: Numbers = places[bad.to_numpy(zero_copy_only=False)]
    return found


def _lacks(column: pa.Array) -> pa.BooleanArray:
    if pa.types.is_struct(column.type):
        inside = (_lacks(pc.struct_field(column, n)) for n in range(column.type.num_fields))
        return reduce(pc.and_, (pc.fill_null(one, True) for one in inside))
    if pa.types.is_integer(column.type):
        return pc.equal(column, 0)
    size = pc.binary_length if pa.types.is_string(column.type) else pc.list_value_length
    return pc.equal(size(column), 0)


def _assemble(
    sequences: Numbers,
    kinds: npt.NDArray[Any] | int,
    reasons: pa.StringArray | list[str | None],
    columns: dict[str, pa.Array] | None = None,
    told: dict[str, pa.Array] | None = None,
) -> pa.RecordBatch:
    """The rows; `part` is 0 unless it is `told`, and everything null that `columns` do not have."""
    schema, count = row_schema(), len(sequences)
    envelope = {
        "sequence": pa.array(sequences),
        "part": pa.array(np.zeros(count, dtype=np.int32)),
        "kind": pa.array(np.broadcast_to(np.asarray(kinds).astype(np.int32), count)),
        "reason": pa.array(reasons, pa.string()) if isinstance(reasons, list) else reasons,
    }
    whole = envelope | (told or {})
    given = {name: whole[name] for name in envelope} | (columns or {}) | {"told": carried(whole)}
    filled = [given[f.name] if f.name in given else _nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(filled, schema=schema)


def _nulls(count: int, kind: pa.DataType) -> pa.Array:
    """Arrow's own null lists are sent with room for elements that nobody has."""
    if not pa.types.is_list(kind):
        return pa.nulls(count, kind)
    buffers = [pa.py_buffer(bytes(size)) for size in (count // 8 + 1, 4 * (count + 1))]
    none = pa.array([], kind.value_type)
    return pa.Array.from_buffers(kind, count, buffers, null_count=count, children=[none])

"""Batches of hostile records with good ones between them, and the rows that come of them.

A batch goes through a real queue, and from there through `rows`, as in a worker of Spark.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from oap.pipeline.bench import NOON
from skyfarer.base.units import MIB
from skyfarer.oap.pipeline.sources.decode import opinions
from skyfarer.oap.pipeline.sources.rows import EXPORTS, Reading, rows
from skyfarer.oap.pipeline.sources.shapes import SHAPES
from skyfarer.oap.pipeline.told import unpacked
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.mutations import Mutator
from skyfarer.testing.specimens import Specimen, Specimens
from skyfarer.wire.rpc import Kind

GOOD_ONE_IN: Final = 5
RECORD_BYTES_MAX: Final = MIB
SPECIMENS_ANALYSED, SPECIMENS_STORED = 6, 1
"""Specimens of each kind. A kind that is only stored has less to break."""


class Record(NamedTuple):
    is_good: bool
    kind: int
    payload: bytes


def specimens(random: Random) -> list[Specimen]:
    """Valid messages of every kind that is ever queued."""
    made = Specimens(random, NOON)
    kinds = [kind for kind in Kind if kind is not Kind.NONE]
    numbers = {kind: SPECIMENS_ANALYSED if kind in SHAPES else SPECIMENS_STORED for kind in kinds}
    return [made.of(kind) for kind in kinds for _ in range(numbers[kind])]


def records(random: Random, hostile: int) -> list[Record]:
    """So many hostile records, and a good one in place of every GOOD_ONE_IN-th."""
    good = specimens(random)
    mutator, made = Mutator(random, good), list[Record]()
    for number in range(hostile):
        if number % (GOOD_ONE_IN - 1) == 0:
            kind, payload, _ = good[random.randrange(len(good))]
            made.append(Record(True, kind, payload))
        made.append(Record(False, *mutator.message()))
    return made


def rows_of(sent: Sequence[Record], decoder: str) -> list[pa.RecordBatch]:
    """The rows of these records, through a queue of their own."""
    directory = Path(tempfile.mkdtemp(prefix="laced"))
    settings = QueueSettings(
        directory, 8 * MIB, 128 * MIB, record_bytes_max=RECORD_BYTES_MAX, consumers=("analysis",)
    )
    writer, reader = Writer(settings), Reader(directory)
    try:
        writer.start()
        for _, kind, payload in sent:
            writer.append(kind, [payload])
        with closing(_Stopping(reader)):
            runs = reader.runs(0, reader.writing())
            return [batch for run in runs for batch in rows(run, Reading(opinions(decoder)))]
    finally:
        writer.stop(1)
        shutil.rmtree(directory)


class _Stopping:
    """A reader, started until it is closed."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        reader.start()

    def close(self) -> None:
        self._reader.stop()


class Outcome(NamedTuple):
    """The rows of a batch of records, row by row."""

    sequences: list[int]
    parts: list[int]
    kinds: list[int]
    reasons: list[str | None]


def outcome_of(batches: Sequence[pa.RecordBatch]) -> Outcome:
    """AssertionError where the driver would not be told of every row."""
    table = pa.Table.from_batches(batches)
    for batch in batches:
        told = unpacked(pa.chunked_array([batch["told"]]))
        assert told.num_rows == batch.num_rows
    names = ("sequence", "part", "kind", "reason")
    return Outcome(*(table[name].to_pylist() for name in names))


def faults_of(sent: Sequence[Record], found: Outcome) -> list[str]:
    """Returns a sentence for each record whose rows are wrong."""
    rows_by_record: dict[int, list[int]] = {number: [] for number in range(len(sent))}
    for row, sequence in enumerate(found.sequences):
        rows_by_record.setdefault(sequence, []).append(row)
    said = list[str]()
    for number, its in rows_by_record.items():
        if number >= len(sent):
            said.append(f"record {number} was never sent")
            continue
        fault = _fault(sent[number], [(found.parts[n], found.kinds[n]) for n in its])
        reasons = {found.reasons[n] for n in its} - {None}
        if not fault and sent[number].is_good and reasons:
            fault = f"a good record is parked: {reasons}"
        if fault:
            _, kind, payload = sent[number]
            said.append(f"{Kind(kind).name} {number}: {fault}: {payload.hex()}")
    return said


def _fault(record: Record, its: list[tuple[int, int]]) -> str:
    if any(kind != record.kind for _, kind in its):
        return f"its rows say that it is another kind: {its}"
    parts = sorted(part for part, _ in its)
    if parts != list(range(len(parts))) or not parts:
        return f"its parts are {parts}"
    if len(parts) > 1 and record.kind not in EXPORTS:
        return f"it has {len(parts)} rows"
    return ""


def parked(found: Outcome) -> int:
    """How many records have a reason in any of their rows."""
    return len(np.unique([s for s, r in zip(found.sequences, found.reasons, strict=True) if r]))

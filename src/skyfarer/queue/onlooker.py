"""Going through records without being a consumer: the ring may move under an onlooker's feet.

A segment is wiped in place once every consumer has committed it, and nobody waits for an onlooker.
`oldest` moves before the bytes below it do, so a record that was copied out and is not below
`oldest` afterwards is the record that was checked; anything else is reported as overwritten.

A dump, for taking records elsewhere, is little-endian and has nothing between its parts:

    head        | "SKYQDUMP" 8 | version u32 | queue id 16 |
    per record  | sequence u64 | kind u32 | length u32 | payload |
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal, NamedTuple

from skyfarer.base.units import MIB
from skyfarer.queue.layout import SLOT_BYTES
from skyfarer.queue.reader import Reader
from skyfarer.queue.run import OVERFLOW, Run

STEP_BYTES: Final = 1 * MIB
VERIFY_STEP_BYTES: Final = 16 * MIB
GAPS_LISTED_MAX: Final = 1000

_DUMP_HEAD: Final = struct.Struct("<8sI16s")
_DUMP_RECORD: Final = struct.Struct("<QII")
_DUMP_MAGIC: Final = b"SKYQDUMP"
_DUMP_VERSION: Final = 1


class Record(NamedTuple):
    sequence: int
    kind: int
    payload: bytes

    def dumped(self) -> bytes:
        return _DUMP_RECORD.pack(self.sequence, self.kind, len(self.payload)) + self.payload


def dump_head(queue_id: str) -> bytes:
    return _DUMP_HEAD.pack(_DUMP_MAGIC, _DUMP_VERSION, bytes.fromhex(queue_id))


class Gap(NamedTuple):
    """Numbers `first` to `end - 1` are damaged (their entry or payload fails its checksum), lost
    (there is no entry: their segment is gone) or overwritten (given up, or committed by all and
    reused)."""

    first: int
    end: int
    what: Literal["damaged", "lost", "overwritten"]

    @property
    def records(self) -> int:
        return self.end - self.first


def pieces(
    reader: Reader, start: int, end: int, step_bytes: int = STEP_BYTES
) -> Iterator[list[Record] | Gap]:
    """Every number from `start` to `end` once: copied records, in lists of about `step_bytes` or
    one record if that is larger, and the gaps among them in ascending order."""
    for run in reader.runs(start, end, step_bytes):
        copies = [
            Record(sequence, kind, bytes(payload))
            for sequence, kind, payload in zip(
                run.sequences(), run.kinds(), run.payloads(), strict=True
            )
        ]
        gone = max(run.first, min(reader.oldest(), run.end)) if copies else run.first
        if gone > run.first:
            yield Gap(run.first, gone, "overwritten")
        yield from _in_order(
            [copy for copy in copies if copy.sequence >= gone],
            [Gap(max(gap.first, gone), gap.end, gap.what) for gap in gaps(run) if gap.end > gone],
        )


def _in_order(records: list[Record], among: list[Gap]) -> Iterator[list[Record] | Gap]:
    begin = 0
    for gap in among:
        stop = begin
        while stop < len(records) and records[stop].sequence < gap.first:
            stop += 1
        if stop > begin:
            yield records[begin:stop]
        yield gap
        begin = stop
    if begin < len(records):
        yield records[begin:]


def gaps(run: Run) -> Iterator[Gap]:
    """What is missing in a run, neighbours taken together."""
    if run.damaged and not len(run.index):
        yield Gap(run.first, run.end, "overwritten" if run.reason == OVERFLOW else "lost")
        return
    for (_, what), group in groupby(
        enumerate(run.damaged), key=lambda one: (one[1] - one[0], _what(run, one[1]))
    ):
        together = [sequence for _, sequence in group]
        yield Gap(together[0], together[-1] + 1, what)


def _what(run: Run, sequence: int) -> Literal["damaged", "lost"]:
    """Where a segment is gone, the reader comes upon the unused entries of the one before it."""
    at = (sequence - run.first) * SLOT_BYTES
    return "damaged" if any(run.index[at : at + SLOT_BYTES]) else "lost"


@dataclass(slots=True)
class Verdict:
    """`gaps` lists the first thousand ranges; the counts are of all."""

    start: int
    end: int
    whole: int = 0
    damaged: int = 0
    lost: int = 0
    overwritten: int = 0
    gaps: list[Gap] = field(default_factory=list)

    def add(self, gap: Gap) -> None:
        if gap.what == "overwritten":
            self.overwritten += gap.records
            return
        if gap.what == "damaged":
            self.damaged += gap.records
        else:
            self.lost += gap.records
        last = self.gaps[-1] if self.gaps else None
        if last is not None and (last.end, last.what) == (gap.first, gap.what):
            self.gaps[-1] = Gap(last.first, gap.end, gap.what)
        elif len(self.gaps) < GAPS_LISTED_MAX:
            self.gaps.append(gap)


def verify(
    reader: Reader, progress: Callable[[int], None], step_bytes: int = VERIFY_STEP_BYTES
) -> Verdict:
    """Checks every record from `oldest` to `writing` as they are at the call; `progress` hears how
    many numbers are behind it. What the owner reuses meanwhile is overwritten, not damaged."""
    verdict = Verdict(reader.oldest(), reader.writing())
    for run in reader.runs(verdict.start, verdict.end, step_bytes):
        verdict.whole += run.count - len(run.damaged)
        for gap in gaps(run):
            verdict.add(gap)
        progress(run.end - verdict.start)
    return verdict

"""What `skyfarer queue` found, in lines for people and in JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from skyfarer.base.units import KIB, MIB
from skyfarer.queue.capacity import Outlook
from skyfarer.queue.inspection import ConsumerView, Inspection
from skyfarer.queue.onlooker import GAPS_LISTED_MAX, Gap, Record, Verdict
from skyfarer.wire.rpc import Kind

if TYPE_CHECKING:
    from skyfarer.cli.replay import Replayed

_LEDGER = ("consumer", "committed", "lag", "accepted", "= delivered", "+ queued", "+ dropped")


def kind_name(kind: int) -> str:
    """A queue of a later version may hold kinds that are not in our table."""
    try:
        return Kind(kind).name
    except ValueError:
        return f"KIND_{kind}"


def as_json(found: Inspection, outlook: Outlook) -> str:
    """JSON has no infinity: a queue that nothing is written to lasts null seconds."""
    figures = {
        name: value if math.isfinite(value) else None for name, value in outlook._asdict().items()
    }
    return json.dumps({**asdict(found), "outlook": figures}, indent=2)


def as_table(found: Inspection, outlook: Outlook) -> str:
    room = found.room
    facts = [
        ("queue", found.directory),
        ("format", f"{found.format_version}, id {found.queue_id}"),
        (
            "capacity",
            f"{room.segments} segments of {_size(found.segment_bytes)}: "
            f"{_size(found.capacity_bytes)}",
        ),
        ("owner", _owner(found)),
        ("records", f"oldest {found.oldest}, writing {found.writing}"),
        ("segments", f"{room.used} used, {room.reusable} reusable, {room.free} free"),
        ("bytes", f"{_size(room.used_bytes)} used, {_size(room.free_bytes)} free"),
        ("lasts", _lasts(outlook)),
        ("damaged", ", ".join(found.damaged_files) or "none"),
        ("set aside", ", ".join(found.corrupt_files) or "none"),
    ]
    lines = [f"{name:<10} {value}" for name, value in facts]
    return "\n".join([*lines, "", *_columns([_LEDGER, *map(_row, found.consumers)])])


def _lasts(outlook: Outlook) -> str:
    if math.isinf(outlook.capacity_s):
        room = "for ever" if outlook.free_s else "no longer: it is full"
        return f"{room}; nothing is being written"
    rate = f"{outlook.records_per_s:.0f} records, {outlook.bytes_per_s / KIB:.1f} KiB a second"
    return (
        f"{outlook.capacity_s:.0f} s at the current rate ({rate}),"
        f" what is free {outlook.free_s:.0f} s"
    )


def _owner(found: Inspection) -> str:
    if found.owner.pid is None:
        return "running" if found.owner.alive else "none so far"
    return f"process {found.owner.pid}, {'running' if found.owner.alive else 'not running'}"


def _row(consumer: ConsumerView) -> tuple[str, ...]:
    ledger = consumer.ledger
    if ledger is None:
        return (consumer.name, "damaged: it will begin at the oldest record")
    dropped = ", ".join(f"{reason} {count}" for reason, count in sorted(ledger.dropped.items()))
    notes = [f"({dropped})"] if dropped else []
    if ledger.overwritten:
        notes.append(f"{ledger.overwritten} of the queued are overwritten already")
    figures = (ledger.committed, ledger.queued, ledger.accepted, ledger.delivered, ledger.queued)
    total = sum(ledger.dropped.values())
    return (consumer.name, *map(str, figures), str(total), " ".join(notes))


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows if len(row) > 2) for at in range(len(_LEDGER))]
    return [_aligned(row, widths).rstrip() for row in rows]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *rest = row
    if len(rest) == 1:
        return f"{name:<{widths[0]}}  {rest[0]}"
    cells = [f"{text:>{width}}" for text, width in zip(rest, widths[1:], strict=False)]
    return "  ".join([f"{name:<{widths[0]}}", *cells, *rest[len(widths) - 1 :]])


def of_record(record: Record) -> str:
    payload = record.payload
    return f"{record.sequence} {kind_name(record.kind)} {len(payload)} {payload.hex()}".rstrip()


def of_gap(gap: Gap) -> str:
    if gap.records == 1:
        return f"record {gap.first} is {gap.what}"
    return f"records {gap.first} to {gap.end - 1} are {gap.what}"


def of_verdict(verdict: Verdict, found: Inspection) -> tuple[list[str], bool]:
    """The lines, and whether nothing is damaged. What was set aside before is no new damage: the
    records it held are counted as lost for as long as they are missing."""
    lines = [of_gap(gap) for gap in verdict.gaps]
    if len(lines) == GAPS_LISTED_MAX:
        lines.append("… and perhaps more; the counts below are of all")
    lines += [f"{name} is damaged" for name in found.damaged_files]
    lines += [
        f"consumer-{consumer.name} is damaged"
        for consumer in found.consumers
        if not consumer.ledger
    ]
    whole = not lines
    lines.append(
        f"{verdict.whole} records whole, {verdict.damaged} damaged, {verdict.lost} lost "
        f"of {verdict.end - verdict.start} from {verdict.start}"
    )
    if verdict.overwritten:
        lines.append(f"{verdict.overwritten} records gave way meanwhile and were not checked")
    return lines, whole


def of_replay(done: Replayed) -> list[str]:
    lines = [f"{done.sent.total()} records sent in {done.calls} calls{_kinds(done.sent.items())}"]
    if done.refused:
        refused = f"{done.refused.total()} refused{_kinds(done.refused.items())}"
        lines.append(f"{refused}; the first: {done.first_refusal}")
    lines += [f"{count} not sent: {what}" for what, count in sorted(done.missing.items())]
    return lines


def _kinds(counts: Iterable[tuple[int, int]]) -> str:
    text = ", ".join(f"{kind_name(kind)} {count}" for kind, count in sorted(counts))
    return f" ({text})" if text else ""


def _size(size_bytes: int) -> str:
    return f"{size_bytes // KIB} KiB" if size_bytes < MIB else f"{size_bytes / MIB:.1f} MiB"

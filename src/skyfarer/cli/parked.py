"""`skyfarer oap parked`: what a running OAP could not analyse, shown and sent once more."""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from skyfarer.base.errors import PermanentError, SkyfarerError
from skyfarer.cli.columns import columns
from skyfarer.cli.queue_text import kind_name
from skyfarer.oap.admin.door import ask

REASON_CHARACTERS_MAX: Final = 100
DUMPED_BYTES_MAX: Final = 4096
_ROW_BYTES: Final = 16


@dataclass(frozen=True)
class RetrySettings:
    """`sequences` None: all, or those of `reason`. `wait_s`: for analysis to come past them."""

    queue: str | None
    sequences: Sequence[int] | None
    reason: str | None
    wait_s: int


def listed(
    directory: Path, queue: str | None, reason: str | None, limit: int, as_json: bool
) -> int:
    """Blocks. The newest of each queue last."""
    question = {"ask": "parked.list", "queue": queue, "reason": reason, "limit": limit}
    entries = [answer["entry"] for answer in ask(directory, question)]
    if as_json:
        for entry in entries:
            print(json.dumps({**entry, "kind": kind_name(entry["kind"])}))
    elif entries:
        print("\n".join(_table(entries)))
    else:
        print("no records are parked" + (f" as {reason}" if reason else ""))
    return 0


def _table(entries: Sequence[dict[str, Any]]) -> list[str]:
    several = len({entry["queue"] for entry in entries}) > 1
    heads = ("sequence", "kind", "bytes", "retried", "reason", "queue")
    cells = [
        (
            str(entry["sequence"]),
            kind_name(entry["kind"]),
            str(entry["size_bytes"]),
            _retried(entry),
            _shortened(entry["reason"]),
            entry["queue"],
        )
        for entry in entries
    ]
    shown = len(heads) if several else len(heads) - 1
    return columns([line[:shown] for line in (heads, *cells)], left=(1, 3, 4, 5))


def _retried(entry: dict[str, Any]) -> str:
    at = entry["retried_as"]
    return str(entry["retried"]) if at is None else f"as {at}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= REASON_CHARACTERS_MAX:
        return line
    return line[: REASON_CHARACTERS_MAX - 1] + "…"


def show(directory: Path, queue: str | None, sequence: int, raw: bool) -> int:
    """Blocks. With `raw` the payload goes to standard output and nothing else does."""
    question = {"ask": "parked.show", "queue": queue, "sequence": sequence}
    answers = list(ask(directory, question))
    entry, payload = answers[0]["entry"], b64decode(answers[0]["payload"])
    if raw:
        sys.stdout.buffer.write(payload)
        sys.stdout.buffer.flush()
        return 0
    facts = (
        ("queue", entry["queue"]),
        ("sequence", str(entry["sequence"])),
        ("kind", kind_name(entry["kind"])),
        ("reason", entry["reason"]),
        ("bytes", str(entry["size_bytes"])),
        ("retried", _retried(entry)),
    )
    print("\n".join(f"{name:<9} {value}" for name, value in facts))
    print("\n".join(["", *dump(payload[:DUMPED_BYTES_MAX])]))
    if len(payload) > DUMPED_BYTES_MAX:
        print(f"… {len(payload) - DUMPED_BYTES_MAX} bytes more; --raw has them all")
    return 0


def dump(payload: bytes) -> Iterator[str]:
    """Offset, bytes in hex, and what of them is ASCII."""
    for at in range(0, len(payload), _ROW_BYTES):
        row = payload[at : at + _ROW_BYTES]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{at:08x}  {row.hex(' '):<{_ROW_BYTES * 3 - 1}}  {text}"


def retry(directory: Path, settings: RetrySettings) -> int:
    """Blocks. 0 when all that were asked for are sent and none is parked again, else 1."""
    sent: Counter[str] = Counter()
    question = {
        "ask": "parked.retry",
        "queue": settings.queue,
        "sequences": settings.sequences,
        "reason": settings.reason,
        "wait_s": settings.wait_s,
    }
    try:
        for answer in ask(directory, question):
            _heard(dict(answer), sent)
    except SkyfarerError as error:
        if not sent["sent"]:
            raise
        raise PermanentError(f"{error}; {sent['sent']} were sent before that") from error
    return 1 if sent["skipped"] or sent["parked"] else 0


def _heard(answer: dict[str, Any], sent: Counter[str]) -> None:
    if "skipped" in answer:
        sent["skipped"] += 1
        print(f"record {answer['skipped']} is not sent: {answer['why']}", file=sys.stderr)
    elif "sent" in answer:
        sent["sent"] += answer["sent"]
        sent["known"] += answer["known"]
    elif "more" in answer:
        print("that is as many as go at once; there may be more: ask again", file=sys.stderr)
    elif "analysed" in answer:
        sent["parked"] = len(answer["parked"])
        print("\n".join(_report(answer, sent)))


def _report(answer: dict[str, Any], sent: Counter[str]) -> Iterator[str]:
    parked = answer["parked"]
    records = "record" if sent["sent"] == 1 else "records"
    yield f"{sent['sent']} {records} sent again" + (
        f": {answer['analysed'] - len(parked)} analysed, {len(parked)} parked again,"
        f" {answer['waiting']} waiting for analysis"
        if sent["sent"]
        else ""
    )
    if sent["known"]:
        yield f"{sent['known']} had been sent before an earlier retry was cut off"
    for one in parked:
        yield f"record {one['sequence']} is parked: {_shortened(one['reason'])}"

"""Whether the records of a script are those that it expects, and where two sets of them differ."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from golden.scripts import DAY_MINUTES, Script, ScriptError, known
from skyfarer.oap.core.slow import Slow
from skyfarer.testing.plain_analysis.records import Record, Records, second

PARTS = ("segments", "slow", "tags")
SEGMENT = (
    *("id", "trace", "service", "instance", "endpoint", "at", "clock", "latency", "error", "tags"),
    *("service_id", "instance_id", "endpoint_id"),
)
SLOW = ("what", "id", "of", "statement", "latency", "trace", "at", "clock", "entity_id")
DAY_MS = DAY_MINUTES * 60_000


def expects_records(script: Script) -> bool:
    return any(part in script.expect for part in PARTS)


def record_differences(script: Script, records: Records) -> list[str]:
    """Each names the script, the expectation and what was stored."""
    noon_ms = script.noon_minute * 60_000
    own = {segment.traceSegmentId for segment in script.segments}
    segments = [_segment(one, noon_ms) for one in records.segments if one["id"] in own]
    slow = [_slow(one, noon_ms) for one in records.slow if one["id"].rpartition("-")[0] in own]
    day = second(script.day * DAY_MS) // 10**6
    tags = sorted(tag for at, tag in records.tags if at == day)
    found = [
        *_each(script, "segments", SEGMENT, ("id",), segments),
        *_each(script, "slow", SLOW, ("what", "id"), slow),
    ]
    if "tags" in script.expect and tags != (wanted := sorted(script.expect["tags"])):
        found.append(f"tags: expected {wanted}, stored {tags}")
    return [f"{script.name}: {one}" for one in found]


def _each(
    script: Script,
    part: str,
    columns: Sequence[str],
    key: Sequence[str],
    records: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """All of them, found by their key, and no other."""
    if part not in script.expect:
        return
    for number, one in enumerate(script.expect[part]):
        known(script.name, f"{part}[{number}]", one, columns, needed=key)
    wanted = {_key(one, key): one for one in script.expect[part]}
    if len(wanted) != len(script.expect[part]):
        raise ScriptError(f"{script.name}: {part} has one record twice")
    stored = {_key(one, key): one for one in records}
    if sorted(wanted) != sorted(_key(one, key) for one in records):
        yield f"{part}: expected {sorted(wanted)}, stored {sorted(stored)}"
        return
    for name, one in wanted.items():
        seen = {column: stored[name][column] for column in one}
        if seen != one:
            yield f"{part} {'/'.join(name)}: expected {one}, stored {seen}"


def _key(one: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(one[name]) for name in names)


def _segment(one: Record, noon_ms: int) -> dict[str, Any]:
    parts = {name: _name(one[f"{name}_id"]) for name in ("service", "instance", "endpoint")}
    return {**one, **parts, **_when(one, noon_ms)}


def _slow(one: Record, noon_ms: int) -> dict[str, Any]:
    named = {"what": Slow(one["what"]).name, "of": _name(one["entity_id"])}
    return {**one, **named, **_when(one, noon_ms)}


def _when(one: Record, noon_ms: int) -> dict[str, Any]:
    clock = f"{one['second'] % 10**6:06d}"
    return {"at": one["start"] - noon_ms, "clock": f"{clock[:2]}:{clock[2:4]}:{clock[4:]}"}


def _name(identifier: str) -> str:
    """The last that the id is made of."""
    return b64decode(identifier.rpartition("_")[2].partition(".")[0]).decode()


def unlike(plain: Records, stored: Records) -> list[str]:
    """What one of them has and the other has not."""
    told = []
    for part in PARTS:
        ours, theirs = (Counter(map(_shown, getattr(one, part))) for one in (plain, stored))
        told += [f"{part}: plain alone has {one}" for one in (ours - theirs).elements()]
        told += [f"{part}: storage alone has {one}" for one in (theirs - ours).elements()]
    return told


def _shown(one: object) -> str:
    return repr(sorted(one.items())) if isinstance(one, dict) else repr(one)

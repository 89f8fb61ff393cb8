"""The zone that days and minutes are of: the server's, by its rules and not by today's offset.

A storage keeps the name of its own, since a node of another one would take days for expired that
are not. Two names may stand for the same rules, and rules change: what is compared is what clocks
show from a year ago to a year from now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from skyfarer.base.errors import PermanentError

_LOCAL_TIME: Final = "/etc/localtime"
_HOUR_S: Final = 3600
_YEAR_S: Final = 366 * 24 * _HOUR_S


def local_zone(now_ms: int) -> tzinfo:
    """This process's. Where no zone with a name shows the same times it is the offset of now."""
    for name in _names():
        zone = _named(name)
        if zone is not None and _alike(zone, None, now_ms):
            return zone
    return datetime.fromtimestamp(now_ms // 1000, UTC).astimezone().tzinfo or UTC


def name_of(zone: tzinfo) -> str:
    """`Europe/Berlin`, or the offset of a zone without a name: `+0530`."""
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    offset = datetime.fromtimestamp(0, zone).strftime("%z")
    return "UTC" if offset == "+0000" else offset


def check_zone(name: str, zone: tzinfo, now_ms: int) -> None:
    """PermanentError unless the zone is that of the storage, whose `name` was given."""
    if name == name_of(zone):
        return
    its_own = _named(name)
    if its_own is None:
        raise PermanentError(
            f"the days of the storage are of the zone {name}, which this machine does not know:"
            " install its zones (tzdata)"
        )
    if not _alike(its_own, zone, now_ms):
        raise PermanentError(
            f"the days of the storage are of the zone {name}, and this node's zone is"
            f" {name_of(zone)}: start it with TZ={name}, or change the zone of the storage as"
            " docs/guide/ttl.md says"
        )


def _names() -> Iterator[str]:
    yield os.environ.get("TZ", "").removeprefix(":")
    yield os.path.realpath(_LOCAL_TIME).partition("/zoneinfo/")[2]
    yield "UTC"
    yield from sorted(available_timezones())


def _named(name: str) -> tzinfo | None:
    """None for what is no name of a zone that this machine has."""
    try:
        if name.startswith(("+", "-")):
            return datetime.strptime(name, "%z").tzinfo
        return ZoneInfo(name) if name else None
    except (OSError, KeyError, ValueError):
        return None


def _alike(first: tzinfo, second: tzinfo | None, now_ms: int) -> bool:
    """None is the zone of this process, as the system has it."""
    now_s = now_ms // 1000
    hours = range(now_s - _YEAR_S, now_s + _YEAR_S, _HOUR_S)
    moments = (datetime.fromtimestamp(at, UTC) for at in hours)
    return all(
        at.astimezone(first).utcoffset() == at.astimezone(second).utcoffset() for at in moments
    )

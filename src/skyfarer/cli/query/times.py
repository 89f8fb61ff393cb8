"""Which time is asked for: a range in the server's zone, in the finest step that fits a chart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from skyfarer.base.errors import ConfigError
from skyfarer.cli.query import defaults
from skyfarer.cli.query.client import Oap

POINTS_MAX: Final = 500
"""The protocol's bound on one chart."""
LAST_DAYS_MAX: Final = 400

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LAST: Final = re.compile("([0-9]{1,6})([smhd])")
_FORMATS: Final = (
    *("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H%M%S", "%Y-%m-%d %H%M"),
    *("%Y-%m-%d %H", "%Y-%m-%d"),
)
_STEPS: Final = (
    ("MINUTE", timedelta(minutes=1), "%Y-%m-%d %H%M"),
    ("HOUR", timedelta(hours=1), "%Y-%m-%d %H"),
    ("DAY", timedelta(days=1), "%Y-%m-%d"),
)
_TIME = "query time { getTimeInfo { timezone currentTimestamp } }"


@dataclass(frozen=True)
class Span:
    """Both ends included, in `zone`, the server's."""

    start: datetime
    end: datetime
    zone: timezone

    def charted(self) -> dict[str, str]:
        """A duration of minutes, of hours where these are too many, or of days."""
        for step, length, shape in _STEPS:
            if (self.end - self.start) / length < POINTS_MAX - 1:
                ends = {"start": self.start.strftime(shape), "end": self.end.strftime(shape)}
                return {**ends, "step": step}
        raise ConfigError(f"that time is longer than {POINTS_MAX - 1} days")

    def by_seconds(self) -> dict[str, str]:
        shape = "%Y-%m-%d %H%M%S"
        ends = {"start": self.start.strftime(shape), "end": self.end.strftime(shape)}
        return {**ends, "step": "SECOND"}

    def clock(self, epoch_ms: int, milliseconds: bool = False) -> str:
        moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).astimezone(self.zone)
        text = moment.strftime("%Y-%m-%d %H:%M:%S")
        return f"{text}.{epoch_ms % 1000:03d}" if milliseconds else text


def asked(oap: Oap, last: str | None, start: str | None, end: str | None) -> Span:
    """`last` is back from the end, which is now unless it is told. ConfigError for what is no
    time; asks the server what time it has."""
    if last is not None and start is not None:
        raise ConfigError("--last and --start say the same: give one of them")
    info = oap.ask(_TIME)["getTimeInfo"] or {}
    zone = _zone(str(info.get("timezone") or "+0000"))
    stop = datetime.fromtimestamp(int(info["currentTimestamp"]) // 1000, zone)
    stop = stop if end is None else _moment("--end", end, zone)
    first = stop - _length(last or defaults.LAST)
    first = first if start is None else _moment("--start", start, zone)
    if first > stop:
        raise ConfigError(f"--start {start} is after the end, {stop:%Y-%m-%d %H:%M:%S}")
    return Span(first, stop, zone)


def _zone(offset: str) -> timezone:
    found = re.fullmatch(r"([+-])([0-9]{2}):?([0-9]{2})", offset)
    if found is None:
        return UTC
    minutes = int(found[2]) * 60 + int(found[3])
    return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))


def _length(text: str) -> timedelta:
    found = _LAST.fullmatch(text)
    length = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()
    if not timedelta() < length <= timedelta(days=LAST_DAYS_MAX):
        raise ConfigError(f"--last {text!r} is no time such as 45s, 30m, 6h or 2d")
    return length


def _moment(flag: str, text: str, zone: timezone) -> datetime:
    for shape in _FORMATS:
        try:
            return datetime.strptime(text, shape).replace(tzinfo=zone)
        except ValueError:
            continue
    raise ConfigError(f"{flag} {text!r} is no time such as '2026-11-15 08:30'")

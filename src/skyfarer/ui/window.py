"""The time that a page looks at, as its address spells it: `last=30m`, or `start=…&end=…`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from skyfarer.ui.model import WINDOW_MINUTES, ServerTime

CHOICES: Final = {"15m": 15, "30m": 30, "1h": 60, "6h": 360, "1d": 1_440, "7d": 10_080}
"""In minutes, as the picker offers them."""
MINUTES_MAX: Final = 45 * 1_440
_LAST = re.compile("([0-9]{1,5})([mhd])")
_UNITS = {"m": 1, "h": 60, "d": 1_440}
_NAMES = {"m": "minute", "h": "hour", "d": "day"}
_WRITTEN = "%Y-%m-%dT%H:%M"
_ASKED = "%Y-%m-%d %H%M"
POINTS_MAX: Final = 500
"""Values that the OAP gives of one metric."""
_STEPS: Final = {
    "MINUTE": (timedelta(minutes=1), _ASKED),
    "HOUR": (timedelta(hours=1), "%Y-%m-%d %H"),
    "DAY": (timedelta(days=1), "%Y-%m-%d"),
}


@dataclass(frozen=True)
class Buckets:
    """What a chart has a value for: minutes, or hours or days where those would be too many. The
    last is still `growing` where it is the one in progress."""

    step: str
    times: tuple[datetime, ...]
    growing: bool

    def duration(self, last: int = POINTS_MAX) -> dict[str, str]:
        """Of the last so many of them, as the API wants it."""
        form = _STEPS[self.step][1]
        some = self.times[-last:]
        return {
            "start": some[0].strftime(form),
            "end": some[-1].strftime(form),
            "step": self.step,
        }


@dataclass(frozen=True)
class Window:
    """The last `minutes`, or what lies between two minutes of the server's time."""

    minutes: int = WINDOW_MINUTES
    fixed: tuple[datetime, datetime] | None = None

    @classmethod
    def of(cls, last: str = "", start: str = "", end: str = "") -> Window:
        """What cannot be read is the usual half hour: an address may have been cut or mistyped."""
        found = _LAST.fullmatch(last)
        minutes = int(found[1]) * _UNITS[found[2]] if found else WINDOW_MINUTES
        fixed = (_minute(start), _minute(end))
        if fixed[0] is None or fixed[1] is None or fixed[0] > fixed[1]:
            return cls(min(max(minutes, 1), MINUTES_MAX))
        return cls(fixed=(fixed[0], fixed[1]))

    def between(self, time: ServerTime) -> tuple[datetime, datetime]:
        """The first and the last minute, both included."""
        if self.fixed is not None:
            zone = time.now.tzinfo
            return self.fixed[0].replace(tzinfo=zone), self.fixed[1].replace(tzinfo=zone)
        last = time.now.replace(second=0, microsecond=0)
        return last - timedelta(minutes=self.minutes), last

    def buckets(self, time: ServerTime) -> Buckets:
        """Those up to the one in progress; of the finest step that has not too many."""
        start, end = self.between(time)
        end = max(start, min(end, time.now))
        for step, (length, _) in _STEPS.items():
            first, last = _floor(start, step), _floor(end, step)
            count = (last - first) // length + 1
            if count <= POINTS_MAX:
                break
        count = min(count, POINTS_MAX)
        times = tuple(last - length * age for age in reversed(range(count)))
        return Buckets(step, times, growing=last >= _floor(time.now, step))

    def duration(self, time: ServerTime) -> dict[str, str]:
        """As the API wants it, in whole minutes."""
        start, end = self.between(time)
        return {"start": start.strftime(_ASKED), "end": end.strftime(_ASKED), "step": "MINUTE"}

    @property
    def last(self) -> str:
        """As the picker names it; empty for a fixed window."""
        if self.fixed is not None:
            return ""
        named = {minutes: name for name, minutes in CHOICES.items()}
        return named.get(self.minutes, f"{self.minutes}m")

    @property
    def words(self) -> str:
        if self.fixed is None:
            return f"in the {last_words(self.last)}"
        start, end = (one.strftime("%Y-%m-%d %H:%M") for one in self.fixed)
        return f"from {start} to {end}"

    def address(self) -> dict[str, str]:
        if self.fixed is None:
            return {"last": self.last}
        start, end = (one.strftime(_WRITTEN) for one in self.fixed)
        return {"start": start, "end": end}

    def kept(self) -> dict[str, str]:
        """For a link to what is seen of the same time; the usual need not be told."""
        return {} if self == Window() else self.address()


def last_words(last: str) -> str:
    number, unit = int(last[:-1]), _NAMES[last[-1]]
    return f"last {unit}" if number == 1 else f"last {number} {unit}s"


def _floor(moment: datetime, step: str) -> datetime:
    minute = moment.replace(second=0, microsecond=0)
    if step == "MINUTE":
        return minute
    hour = minute.replace(minute=0)
    return hour if step == "HOUR" else hour.replace(hour=0)


def _minute(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _WRITTEN)
    except ValueError:
        return None

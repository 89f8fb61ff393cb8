"""What the page shows, as values: no network, no widgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

WINDOW_MINUTES = 30
SLA_WHOLE = 10_000
FAILING_BELOW_SLA = 9_900
SLOW_FROM_MS = 1_000

Values = tuple[float | None, ...]


@dataclass(frozen=True)
class Service:
    id: str
    name: str
    normal: bool
    layers: tuple[str, ...]


@dataclass(frozen=True)
class Series:
    """One value per minute (hour, day). The last is still `growing` where it is the minute in
    progress."""

    values: Values = ()
    growing: bool = True

    @property
    def current(self) -> float | None:
        """The last full minute's value; the one in progress while there is no other."""
        if not self.growing:
            return self.values[-1] if self.values else None
        full = self.values[-2] if len(self.values) > 1 else None
        return full if full is not None or not self.values else self.values[-1]

    @property
    def only_begun(self) -> bool:
        """Whether all there is to show is the minute in progress."""
        begun = self.growing and bool(self.values)
        return begun and all(value is None for value in self.values[:-1])


@dataclass(frozen=True)
class Vitals:
    """The metrics of one service; of one only listed, the averages cover the latest minutes."""

    cpm: Series = field(default_factory=Series)
    resp_time: Series = field(default_factory=Series)
    sla: Series = field(default_factory=Series)

    @property
    def slow(self) -> bool:
        return (self.resp_time.current or 0) >= SLOW_FROM_MS

    @property
    def failing(self) -> bool:
        sla = self.sla.current
        return sla is not None and sla < FAILING_BELOW_SLA


@dataclass(frozen=True)
class Ledger:
    accepted: int
    delivered: int
    queued: int
    dropped: int
    balanced: bool


@dataclass(frozen=True)
class ServerTime:
    """The server's clock; charts and labels are in its zone, wherever the browser is."""

    now: datetime

    @classmethod
    def of(cls, epoch_ms: int, offset: str) -> ServerTime:
        sign = -1 if offset.startswith("-") else 1
        digits = offset.lstrip("+-").rjust(4, "0")
        shift = sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]))
        return cls(datetime.fromtimestamp(epoch_ms / 1000, timezone(shift)))

    def minutes(self, count: int) -> list[datetime]:
        """The last `count` minutes, the one in progress last."""
        last = self.now.replace(second=0, microsecond=0)
        return [last - timedelta(minutes=age) for age in reversed(range(count))]

    def duration(self, count: int) -> dict[str, str]:
        first, last = self.minutes(count)[0], self.minutes(1)[0]
        return {
            "start": first.strftime("%Y-%m-%d %H%M"),
            "end": last.strftime("%Y-%m-%d %H%M"),
            "step": "MINUTE",
        }


@dataclass(frozen=True)
class Overview:
    """All that one refresh brought. `shown` are the services with vitals, those that are only
    conjectured last; `total` is how many there are. `times` are those of every value."""

    time: ServerTime
    shown: Sequence[Service]
    total: int
    vitals: Mapping[str, Vitals]
    selected: Service | None
    times: Sequence[datetime] = ()
    step: str = "MINUTE"


def count_text(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if value < 1_000_000 else f"{value / 1_000_000:.1f} M"


def latency_text(value_ms: float | None) -> str:
    if value_ms is None:
        return "–"
    return f"{value_ms:,} ms" if value_ms < SLOW_FROM_MS else f"{value_ms / 1000:.2f} s"


def share_text(sla: float | None) -> str:
    """A whole 100 % only when it is one: 99.99 must not be rounded up."""
    return "–" if sla is None else f"{sla * 100 / SLA_WHOLE:.2f}".removesuffix(".00") + " %"


def percent(sla: Series) -> Series:
    """The same as a chart has it, in percent: as fine as the figure beside it."""

    def share(one: float) -> float:
        hundredths = one * 100 / SLA_WHOLE
        return int(hundredths) if hundredths.is_integer() else hundredths

    return replace(sla, values=tuple(None if one is None else share(one) for one in sla.values))


def failing_text(sla: float) -> str:
    return f"{(SLA_WHOLE - sla) * 100 / SLA_WHOLE:.1f} % failing"

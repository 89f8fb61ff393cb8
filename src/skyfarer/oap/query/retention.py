"""How many days data is kept, in the protocol's shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NO_COLD_STAGE: Final = -1
_METRICS: Final = ("metadata", "minute", "hour", "day")
_COLD_METRICS: Final = ("coldMinute", "coldHour", "coldDay")
_RECORDS: Final = ("normal", "trace", "zipkinTrace", "log", "browserErrorLog")
_COLD_RECORDS: Final = (
    *("coldNormal", "coldTrace", "coldZipkinTrace", "coldLog", "coldBrowserErrorLog"),
)


@dataclass(frozen=True)
class DaysKept:
    """As `recordDataTTL` and `metricsDataTTL` say."""

    record_days: int = 3
    metrics_days: int = 7

    def metrics(self) -> dict[str, int]:
        return _days(_METRICS, self.metrics_days, _COLD_METRICS)

    def records(self) -> dict[str, int]:
        return _days(_RECORDS, self.record_days, _COLD_RECORDS)


def _days(kept: tuple[str, ...], days: int, cold: tuple[str, ...]) -> dict[str, int]:
    return dict.fromkeys(kept, days) | dict.fromkeys(cold, NO_COLD_STAGE)

"""What this node's way from agents to storage is doing: its books and its own metrics as one value.

    GET /status/pipeline   see `Pipeline.told`; a figure that nobody has counted yet is null, and so
                           is one without an end (a queue that lasts for ever)

For people and pages. Whoever wants it all, or a history, scrapes the telemetry port.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from skyfarer.base.clock import Clock
from skyfarer.telemetry import table
from skyfarer.telemetry.exposition import Snapshot
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Metric, Registry

View = dict[str, Any]
STORAGE = "storage.provider"


class Pipeline:
    """Any thread; blocks on what the metrics and the ledger are read from. `configuration` is the
    node's, for the name of its storage."""

    def __init__(
        self,
        registry: Registry,
        ledger: Callable[[], Ledger],
        clock: Clock,
        configuration: Mapping[str, str],
    ) -> None:
        self._registry = registry
        self._ledger = ledger
        self._clock = clock
        self._storage = configuration.get(STORAGE)

    def told(self) -> View:
        found = _Values(self._registry.snapshot())
        return {
            "time": self._clock.now_ms(),
            "started": _whole(found.least(table.PROCESS_START_TIME), 1000),
            "ledger": ledger_view(self._ledger()),
            "receiver": _receiver(found),
            "queue": _queue(found),
            "analysis": _analysis(found),
            "ttl": _ttl(found),
            "storage": {"provider": self._storage},
            "processes": _processes(found),
        }


def ledger_view(ledger: Ledger) -> View:
    return {
        "accepted": ledger.accepted,
        "delivered": ledger.delivered,
        "queued": ledger.queued,
        "dropped": dict(ledger.dropped),
        "balanced": ledger.balanced,
    }


class _Values:
    """A snapshot by name. What is not finite is none."""

    def __init__(self, families: list[Snapshot]) -> None:
        self._families = {family["name"]: family for family in families}

    def series(self, metric: Metric) -> list[tuple[dict[str, str], float]]:
        family = self._families.get(metric.name)
        if family is None:
            return []
        return [
            (dict(zip(family["labels"], values, strict=True)), number)
            for values, number in family["series"]
            if math.isfinite(number)
        ]

    def sum(self, metric: Metric) -> float | None:
        numbers = [number for _, number in self.series(metric)]
        return sum(numbers) if numbers else None

    def least(self, metric: Metric) -> float | None:
        return min((number for _, number in self.series(metric)), default=None)

    def by(self, metric: Metric, label: str) -> dict[str, int]:
        """Added up over all other labels."""
        sums: dict[str, int] = {}
        for labels, number in self.series(metric):
            sums[labels[label]] = sums.get(labels[label], 0) + int(number)
        return sums


def _receiver(found: _Values) -> View:
    return {
        "connections": _whole(found.sum(table.RECEIVER_CONNECTIONS)),
        "messages": _whole(found.sum(table.RECEIVER_MESSAGES)),
        "refused": found.by(table.RECEIVER_REFUSED, "reason"),
        "satellite_queues": _whole(found.sum(table.RECEIVER_PRODUCERS)),
    }


def _queue(found: _Values) -> View:
    return {
        "capacity_s": found.least(table.QUEUE_CAPACITY_SECONDS),
        "free_s": found.least(table.QUEUE_FREE_SECONDS),
        "rejected": found.by(table.QUEUE_REJECTED, "reason"),
    }


def _analysis(found: _Values) -> View:
    return {
        "lag_s": found.sum(table.PIPELINE_LAG_SECONDS),
        "batches": _whole(found.sum(table.PIPELINE_BATCHES)),
        "restarts": _whole(found.sum(table.PIPELINE_RESTARTS)),
        "last_batch_s": found.sum(table.PIPELINE_BATCH_SECONDS),
        "last_batch_records": _whole(found.sum(table.PIPELINE_BATCH_RECORDS)),
        "records": found.by(table.PIPELINE_RECORDS, "outcome"),
        "rows": found.by(table.PIPELINE_ROWS, "what"),
        "parked": found.by(table.PIPELINE_PARKED, "reason"),
    }


def _ttl(found: _Values) -> View:
    return {
        "last_success_age_s": found.sum(table.TTL_LAST_SUCCESS_AGE),
        "expired_tables": _whole(found.sum(table.TTL_EXPIRED_TABLES)),
        "oldest_age_s": {
            labels["kept"]: number for labels, number in found.series(table.OLDEST_DATA_AGE)
        },
        "dropped": found.by(table.TTL_DROPPED, "kept"),
        "failures": _whole(found.sum(table.TTL_FAILURES)) or 0,
    }


def _processes(found: _Values) -> View:
    return {
        labels["process"]: {"resident_bytes": int(number)}
        for labels, number in found.series(table.PROCESS_RESIDENT_BYTES)
    }


def _whole(number: float | None, times: int = 1) -> int | None:
    return None if number is None else int(number * times)

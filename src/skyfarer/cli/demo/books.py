"""The ledgers of both programs, read where each shows its own."""

from __future__ import annotations

import re

from skyfarer.base.errors import PermanentError
from skyfarer.cli.demo.http import get_json, get_text
from skyfarer.telemetry.ledger import Ledger

_SAMPLE = re.compile(r"^(\w+)(?:\{([^}]*)\})? ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


async def of_satellite(metrics_url: str) -> Ledger:
    """All queues of the satellite together, from its metrics."""
    sums = {"queue_accepted_total": 0, "queue_delivered_total": 0, "queue_queued_records": 0}
    dropped: dict[str, int] = {}
    for name, labels, value in _SAMPLE.findall(await get_text(metrics_url)):
        if name in sums:
            sums[name] += int(float(value))
        elif name == "queue_dropped_total":
            reason = dict(_LABEL.findall(labels))["reason"]
            dropped[reason] = dropped.get(reason, 0) + int(float(value))
    accepted, delivered, queued = sums.values()
    return Ledger(accepted, delivered, queued, dropped)


async def of_oap(ledger_url: str) -> Ledger:
    answer = await get_json(ledger_url)
    try:
        return Ledger(
            int(answer["accepted"]),
            int(answer["delivered"]),
            int(answer["queued"]),
            {str(reason): int(count) for reason, count in answer["dropped"].items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise PermanentError(f"{ledger_url} answered {answer!r}, which is no ledger") from error

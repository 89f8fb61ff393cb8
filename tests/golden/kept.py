"""The settings of records in a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyfarer.testing.plain_analysis.keeping import Keeping, Policy

SETTINGS = ("segmentStatus", "searchable", "sampling", "slow")
SAMPLING = ("rate", "duration", "errors", "services")
SLOW = ("database", "cacheRead", "cacheWrite")
STATUSES = ("FROM_SPAN_STATUS", "FROM_ENTRY_SPAN", "FROM_FIRST_SPAN")


def keeping(settings: Mapping[str, Any]) -> Keeping:
    """What is left out is SkyWalking's default. ValueError says what is wrong."""
    stock = Keeping()
    sampling = _known("sampling", settings.get("sampling", {}), SAMPLING)
    slow = _known("slow", settings.get("slow", {}), SLOW)
    status = settings.get("segmentStatus", stock.failed_by)
    if status not in STATUSES:
        raise ValueError(f"settings.segmentStatus: '{status}' is none of {', '.join(STATUSES)}")
    own = sampling.get("services", {})
    return Keeping(
        failed_by=status,
        searchable=tuple(settings.get("searchable", stock.searchable)),
        policy=_policy(sampling, stock.policy),
        services={name: _policy(one, Policy()) for name, one in own.items()},
        errors=sampling.get("errors", stock.errors),
        database_ms=slow.get("database", stock.database_ms),
        cache_read_ms=slow.get("cacheRead", stock.cache_read_ms),
        cache_write_ms=slow.get("cacheWrite", stock.cache_write_ms),
    )


def _policy(written: Mapping[str, int], otherwise: Policy) -> Policy:
    return Policy(
        written.get("rate", otherwise.rate), written.get("duration", otherwise.duration_ms)
    )


def _known(where: str, written: Any, keys: tuple[str, ...]) -> Mapping[str, Any]:
    for key in written:
        if key not in keys:
            raise ValueError(f"settings.{where} has no '{key}'; it has {', '.join(keys)}")
    return dict(written)

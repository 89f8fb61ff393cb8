"""The metrics that can be asked for, each as what it reads and how its value follows.

Storage keeps one row of accumulators per entity and minute; a metric is a derivation from it, so
that coarser buckets are added up first and divided once. All divisions truncate, as the original's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skyfarer.oap.core.storage import Accumulators, Scope

SLA_WHOLE = 10_000  # sla counts successful calls in hundredths of a percent

Derivation = Callable[[Accumulators, int], int | None]


@dataclass(frozen=True)
class Metric:
    """`derive` takes a bucket's sums and its minutes; None where the sums say nothing."""

    scope: Scope
    derive: Derivation


def _cpm(sums: Accumulators, minutes: int) -> int:
    return sums.calls // minutes


def _resp_time(sums: Accumulators, minutes: int) -> int | None:
    return sums.latency_sum // sums.calls if sums.calls else None


def _sla(sums: Accumulators, minutes: int) -> int | None:
    if not sums.calls:
        return None
    return (sums.calls - sums.errors) * SLA_WHOLE // sums.calls


_DERIVATIONS: dict[str, Derivation] = {"cpm": _cpm, "resp_time": _resp_time, "sla": _sla}

METRICS: dict[str, Metric] = {
    f"{scope.value}_{suffix}": Metric(scope, derive)
    for scope in Scope
    for suffix, derive in _DERIVATIONS.items()
}


def total(rows: Iterable[Accumulators]) -> Accumulators:
    calls = latency_sum = errors = 0
    for row in rows:
        calls += row.calls
        latency_sum += row.latency_sum
        errors += row.errors
    return Accumulators(calls, latency_sum, errors)

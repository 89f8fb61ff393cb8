"""A metric as Spark executes it, printed."""

from __future__ import annotations

import sys

from skyfarer.oap.oal.explanation import found
from skyfarer.oap.oal.plan import Plan


def print_physical_plan(plan: Plan, metric: str) -> None:
    """A PermanentError is raised."""
    source, _ = found(plan, metric)
    from skyfarer.oap.pipeline.physical import physical_plan

    print("starting Spark to ask it for its plan (some seconds)", file=sys.stderr)
    shown = physical_plan(plan, source.source)
    print(f"\nSpark's own plan, for {source.source} alone (an OAP has one for all sources):\n")
    print(shown)

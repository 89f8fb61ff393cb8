"""`skyfarer demo`: all three programs on one machine, under traffic whose totals are known.

With a time limit it is also a proof: every call that was sent must be in the ledgers and in what
the query API answers, once.
"""

from __future__ import annotations

from skyfarer.cli.demo.run import DemoSettings, run

__all__ = ["DemoSettings", "run"]

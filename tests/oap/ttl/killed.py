"""A keeper in a process of its own, that says where it is and is killed there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from skyfarer.oap.core.expiry import DayTable, Lease

if TYPE_CHECKING:
    from skyfarer.oap.storage.embedded.expiry import Expiry as Base
else:
    Base = object

PROGRAM = """
import sys
from importlib import import_module
sys.path.insert(0, sys.argv[1])
import_module(sys.argv[2]).run_and_say(sys.argv[3])
print("over", flush=True)
"""
TESTS = Path(__file__).parents[2]


class Saying(Base):
    """Says before and after each drop, and between its two transactions, that it is there, and
    waits to be told to go on."""

    def drop(self, lease: Lease, table: DayTable) -> bool:
        _said("before")
        dropped = super().drop(lease, table)
        _said("after")
        return dropped

    def _sweep(self) -> None:
        _said("between")
        super()._sweep()


def _said(where: str) -> None:
    print(where, flush=True)
    sys.stdin.readline()


def killed_at(module: str, argument: str, moment: int) -> bool:
    """Runs the module's `run_and_say`, lets it go on so many times, and kills it there; False if it
    was over before that."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, TESTS, module, argument],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        for _ in range(moment):
            if process.stdout.readline() == "over\n":
                return False
            process.stdin.write("\n")
            process.stdin.flush()
        said = process.stdout.readline().strip()
        os.kill(process.pid, signal.SIGKILL)
        assert said in ("before", "between", "after", "over")
        return said != "over"

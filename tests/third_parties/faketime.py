"""Clocks that jump, of one process alone: libfaketime, as Debian's wrapper has it."""

from __future__ import annotations

import subprocess
from pathlib import Path


def changes(clock: Path) -> dict[str, str]:
    """Of the environment of a process whose clock is as far off as the file says (`+3600`); spans
    are measured as they are."""
    return {
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "LD_PRELOAD": _library(),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _library() -> str:
    command = ["faketime", "-f", "+0d", "printenv", "LD_PRELOAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

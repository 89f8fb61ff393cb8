"""Where records go that the upstream refuses for good: a file to look into, one JSON line each.

    {"time_ms": …, "sequence": …, "kind": …, "reason": "…", "payload": "<base64>"}

The file is bounded: when full it becomes `<name>.1`, in place of the one before. A record may stand
in it twice if the process died before the commit; its sequence tells.
"""

from __future__ import annotations

import errno
import json
import os
from binascii import b2a_base64
from pathlib import Path

from skyfarer.base.clock import Clock
from skyfarer.base.units import MIB

DEAD_LETTER_BYTES_MAX = 16 * MIB


class DeadLetters:
    """Appends block for one write. Nothing is created before the first record is parked."""

    def __init__(self, path: Path, clock: Clock, bytes_max: int = DEAD_LETTER_BYTES_MAX) -> None:
        self.path = path
        self._clock = clock
        self._bytes_max = bytes_max

    def park(self, sequence: int, kind: int, reason: str, payload: bytes | memoryview) -> None:
        """The line is in the file on return (it survives a killed process); OSError if not."""
        entry = {
            "time_ms": self._clock.now_ms(),
            "sequence": sequence,
            "kind": kind,
            "reason": reason,
            "payload": b2a_base64(payload, newline=False).decode("ascii"),
        }
        line = json.dumps(entry).encode() + b"\n"
        self._make_room(len(line))
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.write(file, line) != len(line):
                raise OSError(errno.ENOSPC, "no room for a whole dead letter", str(self.path))
        finally:
            os.close(file)

    def _make_room(self, line_bytes: int) -> None:
        try:
            used = self.path.stat().st_size
        except FileNotFoundError:
            return
        if used + line_bytes > self._bytes_max:
            self.path.replace(self.path.with_name(self.path.name + ".1"))

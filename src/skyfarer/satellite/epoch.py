"""Telling apart two lives of one queue that may have given one number to two records.

A number is never used twice while the machine runs. But a power cut may take records with it that
were sent already, and a copy of a directory that is put back, or started elsewhere, knows nothing
of what came after it: their numbers are given again. An upstream that drops what it has by number
would lose the new records. So a queue goes by another name after each boot, and in each copy.
The price is that what was on its way at that moment, and comes again, is not known again.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Final

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
# Made once with the directory, and never written again: a copy of it is another file.
_MADE_ONCE: Final = "meta"


def epoch(directory: Path, boot_id: Path = BOOT_ID) -> str:
    """16 digits, the same for every process that opens the queue in that directory until the
    machine starts anew. Where boots cannot be told apart, no two are the same. OSError when there
    is no queue."""
    try:
        boot = uuid.UUID(boot_id.read_text().strip())
    except (OSError, ValueError):
        boot = uuid.uuid4()
    inode = (directory / _MADE_ONCE).stat().st_ino
    return f"{boot.int >> 64 ^ inode:016x}"

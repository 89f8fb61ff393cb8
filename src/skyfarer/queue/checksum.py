"""CRC32C, at about the speed of memory.

`fastcrc` takes any buffer without copying it. What it was chosen over, with figures, is in
docs/adr/004-queue-format.md.
"""

from __future__ import annotations

from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]

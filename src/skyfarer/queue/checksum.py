"""CRC32C, at about the speed of memory.

`fastcrc` takes any buffer without copying it, folds with carry-less multiplication (twice as fast
as the processor's own CRC32C instruction) and costs 0.9 MB of resident memory. What it was chosen
over, with figures, is in docs/adr/004-queue-format.md.
"""

from __future__ import annotations

from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]

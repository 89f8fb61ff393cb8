"""As many rows as a number of bytes allows."""

from __future__ import annotations

from typing import Any


def within_bytes(rows: list[Any], bytes_max: int) -> list[Any]:
    """The first of these (sequence, size, …), at least one."""
    chosen, total = list[Any](), 0
    for row in rows:
        total += row[1]
        if chosen and total > bytes_max:
            break
        chosen.append(row)
    return chosen

"""The books of a queue: every record it ever accepted is in exactly one place.

accepted = delivered + queued + dropped, to the record, across crashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Ledger:
    accepted: int
    delivered: int
    queued: int
    dropped: Mapping[str, int]

    @property
    def balanced(self) -> bool:
        return self.accepted == self.delivered + self.queued + sum(self.dropped.values())

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(self.dropped.items()))
        total = sum(self.dropped.values())
        return (
            f"accepted {self.accepted} = delivered {self.delivered} + queued {self.queued}"
            f" + dropped {total}" + (f" {{{reasons}}}" if reasons else "")
        )

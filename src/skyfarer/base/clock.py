"""Time as an argument, so that a test can hold it still or move it by hand."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Never blocks; any thread. `monotonic_s` measures spans, `now_ms` names moments."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; an operator may set it back."""
        ...

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

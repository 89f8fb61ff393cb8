"""A clock that stands still until a test moves it."""

from __future__ import annotations


class HandClock:
    def __init__(self, now_ms: int = 0) -> None:
        self._begun_ms = now_ms
        self.seconds = 0.0

    def set_ahead(self, by_ms: int) -> None:
        """As an operator does who sets the time: spans are measured on as before."""
        self._begun_ms += by_ms

    def now_ms(self) -> int:
        return self._begun_ms + int(self.seconds * 1000)

    def monotonic_s(self) -> float:
        return self.seconds

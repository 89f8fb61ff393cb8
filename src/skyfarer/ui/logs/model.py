"""Logs as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PAGE_ROWS: Final = 50


@dataclass(frozen=True)
class LogRow:
    time_ms: int
    service: str
    endpoint: str
    trace_id: str
    text: str
    tags: tuple[tuple[str, str], ...]

    @property
    def level(self) -> str:
        return next((value for key, value in self.tags if key.lower() == "level"), "")

"""Statements and commands that took long: the slowest of each minute are kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

SLOWEST_MAX: Final = 50
"""Of one entity in one minute. Exactly the slowest ones, unlike the original's."""
STATEMENT_CHARS_MAX: Final = 2_000


class Slow(Enum):
    """What took long, and of whom it is kept. The value is the name of its table."""

    DATABASE = "top_n_database_statement"  # of the database
    SERVICE_DATABASE = "top_n_service_database_statement"  # of the service that asked it
    CACHE_READ = "top_n_cache_read_command"  # of the cache
    CACHE_WRITE = "top_n_cache_write_command"

    @property
    def normal(self) -> bool:
        """Whether it is kept of a service that agents watch."""
        return self is Slow.SERVICE_DATABASE


@dataclass(frozen=True)
class SlowStatement:
    """`id` is that of the segment, `-` and the number of the span; `timestamp` is when the span
    began, in epoch milliseconds, `latency` in ms."""

    id: str
    entity_id: str
    statement: str
    latency: int
    trace_id: str
    timestamp: int


class SlowReader(Protocol):
    """Any thread; blocks on storage, for a bounded time: RetryableError when it is over."""

    def slowest(
        self, what: Slow, entity_id: str | None, between: tuple[int, int], limit: int
    ) -> list[SlowStatement]:
        """Of that service, or of all; `between` is a range of second buckets, both ends included.
        The slowest first, equal ones by their ids."""

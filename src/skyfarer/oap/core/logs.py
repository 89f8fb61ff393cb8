"""Logs as storage has them: found by whom they are of, by their trace and by searchable tags.

A log's bytes are kept as they came; `kind` (wire.rpc.Kind) says how they are to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

LEVEL: Final = "level"
"""The tag that holds a log's severity."""
LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
NUMBERS_A_LEVEL: Final = 4
"""OpenTelemetry numbers severities from 1 on, so many to each of the levels."""


@dataclass(frozen=True)
class LogCondition:
    """What is None is not asked for. `between` is a range of second buckets, both ends included.
    A log has all of the `tags`, each `key=value`.

    Every log is found that has all of the `words` somewhere in its bytes, in UTF-8, whichever case
    their letters A to Z have. Bytes hold more than a log's content, and a provider may find a few
    that only look so: who wants words in the content looks again at what is found."""

    between: tuple[int, int] | None = None
    service_id: str | None = None
    instance_id: str | None = None
    endpoint_id: str | None = None
    trace_id: str | None = None
    segment_id: str | None = None
    span_id: int | None = None
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredLog:
    """`instance_id` and `endpoint_id` are empty where the log names none. `timestamp` is in epoch
    milliseconds: of its arrival, where the log has no time. `data` is None where the bytes asked
    for in all were used up before it."""

    service_id: str
    instance_id: str
    endpoint_id: str
    trace_id: str
    timestamp: int
    kind: int
    data: bytes | None


class LogReader(Protocol):
    """Any thread; blocks on storage, for a bounded time: RetryableError when it is over."""

    def logs(
        self, condition: LogCondition, newest_first: bool, offset: int, limit: int, bytes_max: int
    ) -> list[StoredLog]:
        """One page, by time; equal ones by their place in the queue, so pages do not overlap."""

    def log_tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        """Of the tags that logs of these days are found by, sorted; whole days are looked at."""

    def log_tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        """The values that such tags have, sorted."""

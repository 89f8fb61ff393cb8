"""Events: what happened to a service, an instance or an endpoint (a restart, a deployment).

An event is told when it begins and again when it has ended, under the same id: both are one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

MESSAGE_CHARS_MAX: Final = 2_000


@dataclass(frozen=True)
class EventCondition:
    """What is None is not asked for. `between` is a range of second buckets, both ends included,
    of the time an event began, or ended where its beginning was never told. `type` is 0 for a
    normal one, 1 for an error. `layer` is the name of a Layer."""

    between: tuple[int, int] | None = None
    uuid: str | None = None
    service: str | None = None
    instance: str | None = None
    endpoint: str | None = None
    name: str | None = None
    type: int | None = None
    layer: str | None = None


@dataclass(frozen=True)
class StoredEvent:
    """Times are in epoch milliseconds, 0 where not told. `parameters` are in the order of their
    keys."""

    uuid: str
    service: str
    instance: str
    endpoint: str
    name: str
    type: int
    message: str
    parameters: tuple[tuple[str, str], ...]
    start_time: int
    end_time: int
    layer: str


class EventReader(Protocol):
    """Any thread; blocks on storage, for a bounded time: RetryableError when it is over."""

    def events(
        self, condition: EventCondition, newest_first: bool, offset: int, limit: int
    ) -> list[StoredEvent]:
        """One page, by the time they are found by; equal ones by their ids."""

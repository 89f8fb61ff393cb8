"""Records that analysis set aside, and how the bytes of one come to be analysed anew.

A parked record stays what it is: a record of its queue that was dropped for a reason, and counted
so once. To retry it is to append its bytes as a new record, which is accepted and has an outcome of
its own. Each is retried once at most: whatever is parked again is another record.

    intend_retry   gives the record a number, durably, before anything is appended
    (append)       under that number: the receiver's door keeps a number once, across kills
    settle_retry   marks it, durably, once the queue has it

Killed between any two of these, the same call again ends in the same state (ADR 013).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

DAMAGED: Final = ("corrupt", "overflow")
"""Reasons of records whose bytes are not those that came: to retry one would be to invent it."""


class RetryState(Enum):
    NOT_RETRIED = "no"
    IN_DOUBT = "in doubt"  # intended, and not settled: the queue may have it
    RETRIED = "yes"


@dataclass(frozen=True)
class ParkedEntry:
    """`retried_as` is its number in the queue in use, if that is known."""

    partition: str
    sequence: int
    kind: int
    reason: str
    size_bytes: int
    state: RetryState
    retried_as: int | None = None

    @property
    def code(self) -> str:
        """The reason's first word, under which the ledger counts it."""
        return self.reason.partition(":")[0]

    @property
    def damaged(self) -> bool:
        return self.kind <= 0 or self.code in DAMAGED


@dataclass(frozen=True)
class ParkedQuery:
    """None is any; `reason` is a code. At most `limit`, the newest."""

    partition: str | None = None
    sequences: Sequence[int] | None = None
    reason: str | None = None
    limit: int = 1000


@dataclass(frozen=True)
class Retry:
    number: int
    sequence: int
    kind: int
    payload: bytes


class ParkedRecords(Protocol):
    """Any thread; may block on storage. What is intended or settled is durable on return."""

    def retry_producer(self) -> str:
        """Whose the numbers are: of this storage, for ever."""

    def parked_entries(self, query: ParkedQuery) -> list[ParkedEntry]:
        """By queue and then by sequence, so that of each queue the newest is last."""

    def parked_payload(self, partition: str, sequence: int) -> bytes | None: ...

    def intend_retry(
        self, query: ParkedQuery, within: range, records_max: int, bytes_max: int
    ) -> list[Retry]:
        """Of what the query says and has not been retried, the first with sequences in `within`;
        empty when there is none. The query names a partition, its limit does not count. Who was
        given a number keeps it. One record may exceed `bytes_max`. Damaged ones are left out."""

    def settle_retry(self, kept: Mapping[int, int | None]) -> None:
        """Number → sequence in the queue, None for one that it had already. Twice is once."""

"""What every storage promises of parked records and of sending them again."""

from __future__ import annotations

from collections import Counter
from typing import Any

from contracts.storage_contract import batch
from skyfarer.oap.core.parked import ParkedEntry, ParkedQuery, ParkedRecords, Retry, RetryState
from skyfarer.oap.core.storage import Parked

QUEUE = "queue-a"
ALL = ParkedQuery(QUEUE)
PLENTY = 1 << 20
RECORDS = (
    Parked(0, 1, "undecodable: no message", b"zero"),
    Parked(1, 25, "unknown_instance: 7 was never given out", b"one"),
    Parked(2, 1, "undecodable: no message", b""),
    Parked(3, 1, "corrupt: its checksum fails", b"three"),
    Parked(4, 0, "overflow: overwritten", b""),
)


def park(storage: Any, *records: Parked) -> None:
    dropped = Counter(record.reason.partition(":")[0] for record in records)
    first = storage.applied(QUEUE)
    storage.apply(batch(first, first + len(records), parked=records, dropped=dropped))


def sequences(entries: list[ParkedEntry]) -> list[int]:
    return [entry.sequence for entry in entries]


def intended(storage: ParkedRecords, query: ParkedQuery = ALL) -> list[Retry]:
    return storage.intend_retry(query, range(PLENTY), 100, PLENTY)


class ParkedContract:
    def test_they_are_listed_in_order_without_their_bytes(self, storage: Any) -> None:
        park(storage, *RECORDS)
        assert storage.parked_entries(ParkedQuery(limit=2)) == [
            ParkedEntry(QUEUE, 3, 1, RECORDS[3].reason, 5, RetryState.NOT_RETRIED),
            ParkedEntry(QUEUE, 4, 0, RECORDS[4].reason, 0, RetryState.NOT_RETRIED),
        ]
        by_reason = ParkedQuery(reason="undecodable")
        assert sequences(storage.parked_entries(by_reason)) == [0, 2]
        assert sequences(storage.parked_entries(ParkedQuery(QUEUE, [1, 3, 9]))) == [1, 3]
        assert storage.parked_entries(ParkedQuery("another")) == []

    def test_their_bytes_are_those_that_came(self, storage: Any) -> None:
        park(storage, *RECORDS)
        found = [storage.parked_payload(QUEUE, sequence) for sequence in (1, 2, 9)]
        assert found == [b"one", b"", None]

    def test_a_retry_is_numbered_once_and_what_is_damaged_is_not_retried(
        self, storage: Any
    ) -> None:
        park(storage, *RECORDS)
        (named,) = intended(storage, ParkedQuery(QUEUE, [2]))
        first = intended(storage)
        assert named == Retry(0, 2, 1, b"")
        assert [(one.number, one.sequence, one.payload) for one in first] == [
            (1, 0, b"zero"),
            (2, 1, b"one"),
            (0, 2, b""),
        ]
        assert intended(storage) == first
        states = [entry.state for entry in storage.parked_entries(ALL)]
        assert states == [RetryState.IN_DOUBT] * 3 + [RetryState.NOT_RETRIED] * 2

    def test_groups_are_bounded_and_follow_each_other(self, storage: Any) -> None:
        park(storage, *RECORDS)
        groups, first = [], 0
        while group := storage.intend_retry(ALL, range(first, PLENTY), 2, 4):
            groups.append([one.sequence for one in group])
            first = groups[-1][-1] + 1
        assert groups == [[0], [1, 2]]
        (only,) = storage.intend_retry(ALL, range(1, 2), 2, 4)
        assert only.sequence == 1

    def test_what_is_settled_is_marked_and_not_retried_again(self, storage: Any) -> None:
        park(storage, *RECORDS)
        zero, one, two = intended(storage)
        for _ in range(2):
            storage.settle_retry({zero.number: 17, one.number: None})
        storage.settle_retry({zero.number: None})
        marks = [(entry.state, entry.retried_as) for entry in storage.parked_entries(ALL)]
        assert marks[:3] == [
            (RetryState.RETRIED, 17),
            (RetryState.RETRIED, None),
            (RetryState.IN_DOUBT, None),
        ]
        assert intended(storage) == [two]

    def test_to_retry_changes_nothing_of_the_books(self, storage: Any) -> None:
        park(storage, *RECORDS)
        before = storage.progress(QUEUE)
        storage.settle_retry({one.number: 9 for one in intended(storage)})
        assert storage.progress(QUEUE) == before
        assert len(storage.parked(QUEUE)) == len(RECORDS)

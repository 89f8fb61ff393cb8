"""Parked records, and which of them were sent again: see `oap.core.parked`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

import duckdb

from skyfarer.oap.core.parked import DAMAGED, ParkedEntry, ParkedQuery, Retry, RetryState
from skyfarer.oap.storage.portions import within_bytes

DDL: Final = """
CREATE TABLE IF NOT EXISTS parked_retry (
    partition VARCHAR, sequence BIGINT, number BIGINT NOT NULL, settled BOOLEAN NOT NULL,
    retried_as BIGINT, PRIMARY KEY (partition, sequence));
CREATE TABLE IF NOT EXISTS parked_producer (name VARCHAR PRIMARY KEY);
INSERT INTO parked_producer
    SELECT 'parked-' || gen_random_uuid() WHERE NOT EXISTS (FROM parked_producer);
"""

_CODE: Final = "split_part(p.reason, ':', 1)"
_WANTED: Final = f"""FROM parked_record p LEFT JOIN parked_retry r USING (partition, sequence)
    WHERE ($partition IS NULL OR partition = $partition)
    AND ($sequences IS NULL OR list_contains($sequences, sequence))
    AND ($reason IS NULL OR {_CODE} = $reason)"""
_STATES: Final = {
    None: RetryState.NOT_RETRIED,
    False: RetryState.IN_DOUBT,
    True: RetryState.RETRIED,
}


class ParkedTables(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def retry_producer(self) -> str:
        with self._reading() as cursor:
            return str(cursor.execute("FROM parked_producer").fetchall()[0][0])

    def parked_entries(self, query: ParkedQuery) -> list[ParkedEntry]:
        with self._reading() as cursor:
            rows = cursor.execute(
                f"""FROM (
                    SELECT partition, sequence, p.kind, p.reason, octet_length(p.payload),
                        r.settled, r.retried_as
                    {_WANTED} ORDER BY partition DESC, sequence DESC LIMIT $limit)
                ORDER BY partition, sequence""",
                {**_parameters(query), "limit": query.limit},
            ).fetchall()
        return [
            ParkedEntry(partition, at, kind, reason, size, _STATES[settled], retried_as)
            for partition, at, kind, reason, size, settled, retried_as in rows
        ]

    def parked_payload(self, partition: str, sequence: int) -> bytes | None:
        with self._reading() as cursor:
            found = cursor.execute(
                "SELECT payload FROM parked_record WHERE partition = ? AND sequence = ?",
                [partition, sequence],
            ).fetchall()
        return bytes(found[0][0]) if found else None

    def intend_retry(
        self, query: ParkedQuery, within: range, records_max: int, bytes_max: int
    ) -> list[Retry]:
        with self._transaction() as cursor:
            sizes = cursor.execute(
                f"""SELECT sequence, octet_length(p.payload), r.number {_WANTED}
                AND r.settled IS DISTINCT FROM true AND p.kind > 0
                AND NOT list_contains($damaged, {_CODE}) AND sequence >= $first AND sequence < $end
                ORDER BY sequence LIMIT $records_max""",
                {
                    **_parameters(query),
                    "damaged": list(DAMAGED),
                    "first": within.start,
                    "end": within.stop,
                    "records_max": records_max,
                },
            ).fetchall()
            chosen = within_bytes(sizes, bytes_max)
            _number(cursor, query.partition, [sequence for sequence, _, no in chosen if no is None])
            return _retries(cursor, query.partition, [sequence for sequence, *_ in chosen])

    def settle_retry(self, kept: Mapping[int, int | None]) -> None:
        with self._transaction() as cursor:
            for number, sequence in kept.items():
                cursor.execute(
                    """UPDATE parked_retry SET settled = true,
                        retried_as = coalesce(retried_as, ?) WHERE number = ?""",
                    [sequence, number],
                )


def _parameters(query: ParkedQuery) -> dict[str, Any]:
    return {
        "partition": query.partition,
        "sequences": None if query.sequences is None else list(query.sequences),
        "reason": query.reason,
    }


def _number(cursor: duckdb.DuckDBPyConnection, partition: str | None, sequences: list[int]) -> None:
    (highest,) = cursor.execute("SELECT max(number) FROM parked_retry").fetchall()[0]
    first = 0 if highest is None else highest + 1
    for number, sequence in enumerate(sequences, first):
        cursor.execute(
            "INSERT INTO parked_retry VALUES (?, ?, ?, false, NULL)", [partition, sequence, number]
        )


def _retries(
    cursor: duckdb.DuckDBPyConnection, partition: str | None, sequences: list[int]
) -> list[Retry]:
    rows = cursor.execute(
        """SELECT r.number, sequence, p.kind, p.payload
        FROM parked_record p JOIN parked_retry r USING (partition, sequence)
        WHERE partition = ? AND list_contains(?, sequence) ORDER BY sequence""",
        [partition, sequences],
    )
    return [
        Retry(number, at, kind, bytes(payload)) for number, at, kind, payload in rows.fetchall()
    ]

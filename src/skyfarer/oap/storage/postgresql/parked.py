"""Parked records, and which of them were sent again: see `oap.core.parked`.

Numbers are given under a lock of their table: two nodes that number at once must not give one
twice, since it is the name under which a queue keeps a record once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from skyfarer.oap.core.parked import DAMAGED, ParkedEntry, ParkedQuery, Retry, RetryState
from skyfarer.oap.storage.portions import within_bytes
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.models import TEXT

DDL: Final = f"""
CREATE TABLE IF NOT EXISTS parked_retry (
    partition {TEXT}, sequence BIGINT, number BIGINT NOT NULL, settled BOOLEAN NOT NULL,
    retried_as BIGINT, PRIMARY KEY (partition, sequence));
CREATE TABLE IF NOT EXISTS parked_producer (name {TEXT} PRIMARY KEY);
INSERT INTO parked_producer
    SELECT 'parked-' || gen_random_uuid() WHERE NOT EXISTS (SELECT FROM parked_producer);
"""

_CODE: Final = "split_part(p.reason, ':', 1)"
_WANTED: Final = f"""FROM parked_record p LEFT JOIN parked_retry r USING (partition, sequence)
    WHERE (%(partition)s::text IS NULL OR partition = %(partition)s::text)
    AND (%(sequences)s::bigint[] IS NULL OR sequence = ANY(%(sequences)s::bigint[]))
    AND (%(reason)s::text IS NULL OR {_CODE} = %(reason)s::text)"""
_STATES: Final = {
    None: RetryState.NOT_RETRIED,
    False: RetryState.IN_DOUBT,
    True: RetryState.RETRIED,
}


class ParkedTables(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Cursor]: ...

    def retry_producer(self) -> str:
        with self._reading() as cursor:
            return str(cursor.execute("SELECT name FROM parked_producer").fetchall()[0][0])

    def parked_entries(self, query: ParkedQuery) -> list[ParkedEntry]:
        with self._reading() as cursor:
            rows = cursor.execute(
                f"""SELECT * FROM (
                    SELECT partition, sequence, p.kind, p.reason, octet_length(p.payload),
                        r.settled, r.retried_as
                    {_WANTED} ORDER BY partition DESC, sequence DESC LIMIT %(limit)s) AS newest
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
                "SELECT payload FROM parked_record WHERE partition = %s AND sequence = %s",
                [partition, sequence],
            ).fetchall()
        return bytes(found[0][0]) if found else None

    def intend_retry(
        self, query: ParkedQuery, within: range, records_max: int, bytes_max: int
    ) -> list[Retry]:
        with self._transaction() as cursor:
            cursor.execute("LOCK TABLE parked_retry IN SHARE ROW EXCLUSIVE MODE")
            sizes = cursor.execute(
                f"""SELECT sequence, octet_length(p.payload), r.number {_WANTED}
                AND r.settled IS DISTINCT FROM true AND p.kind > 0
                AND NOT {_CODE} = ANY(%(damaged)s)
                AND sequence >= %(first)s AND sequence < %(end)s
                ORDER BY sequence LIMIT %(records_max)s""",
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
                        retried_as = coalesce(retried_as, %s::bigint) WHERE number = %s""",
                    [sequence, number],
                )


def _parameters(query: ParkedQuery) -> dict[str, Any]:
    return {
        "partition": query.partition,
        "sequences": None if query.sequences is None else list(query.sequences),
        "reason": query.reason,
    }


def _number(cursor: Cursor, partition: str | None, sequences: list[int]) -> None:
    (highest,) = cursor.execute("SELECT max(number) FROM parked_retry").fetchall()[0]
    first = 0 if highest is None else highest + 1
    for number, sequence in enumerate(sequences, first):
        cursor.execute(
            "INSERT INTO parked_retry VALUES (%s, %s, %s, false, NULL)",
            [partition, sequence, number],
        )


def _retries(cursor: Cursor, partition: str | None, sequences: list[int]) -> list[Retry]:
    rows = cursor.execute(
        """SELECT r.number, sequence, p.kind, p.payload
        FROM parked_record p JOIN parked_retry r USING (partition, sequence)
        WHERE partition = %s AND sequence = ANY(%s) ORDER BY sequence""",
        [partition, sequences],
    )
    return [
        Retry(number, at, kind, bytes(payload)) for number, at, kind, payload in rows.fetchall()
    ]

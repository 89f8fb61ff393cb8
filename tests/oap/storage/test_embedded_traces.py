from __future__ import annotations

import pytest

from contracts.storage_contract import batch, segment
from contracts.trace_contract import TraceContract
from skyfarer.base.errors import RetryableError
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.embedded.searching import bounded


class TestEmbeddedTraces(TraceContract):
    pass


def test_a_search_without_an_end_is_given_up_and_the_storage_goes_on(
    storage: EmbeddedStorage,
) -> None:
    cursor = storage._cursor()
    with pytest.raises(RetryableError, match="ask for a shorter time"), bounded(cursor, 0.2):
        cursor.execute("SELECT sum(sin(a.range)) FROM range(10_000_000) a, range(10_000_000)")
    assert storage.trace("t", 1, 1) == []


def test_a_trace_is_found_by_the_index(storage: EmbeddedStorage) -> None:
    storage.apply(batch(0, 5000, [segment(f"s{n}", trace_id=f"t{n}") for n in range(5000)]))
    query = (
        "EXPLAIN ANALYZE SELECT segment_id, rowid FROM segment_20261115 WHERE trace_id = ? LIMIT 9"
    )
    ((_, plan),) = storage._cursor().execute(query, ["t4711"]).fetchall()
    assert "Index Scan" in plan

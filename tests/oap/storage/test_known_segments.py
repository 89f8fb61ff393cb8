from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pytest

from contracts.storage_contract import MINUTE, batch, segment
from skyfarer.oap.storage.embedded import EmbeddedStorage, resends
from skyfarer.oap.storage.embedded.known import DAYS_MAX, Known

DAY_MINUTES = 1440


def known(storage: EmbeddedStorage, *ids: str, minute: int = MINUTE) -> set[str]:
    minutes = pa.chunked_array([[minute] * len(ids)])
    return set(storage.known_segments(pa.chunked_array([list(ids)]), minutes))


def none() -> Iterator[Sequence[str]]:
    return iter(())


def test_a_filter_lets_no_stored_id_pass_for_a_new_one() -> None:
    filters, ids = Known(), [f"segment-{n}" for n in range(20_000)]
    assert filters.suspects(1, ids[:3], lambda: iter([ids[:5_000], ids[5_000:9_000]])) == ids[:3]
    filters.add(1, ids[9_000:10_000])
    assert filters.suspects(1, ids[:10_000], none) == ids[:10_000]
    assert len(filters.suspects(1, ids[10_000:], none)) < 10


def test_only_the_newest_days_have_a_filter() -> None:
    filters = Known()
    for day in range(2, DAYS_MAX + 3):
        assert filters.suspects(day, ["a"], none) == []
    assert filters.suspects(1, ["a"], none) == ["a"]
    assert filters.suspects(DAYS_MAX + 2, ["a"], none) == []


def test_segments_of_batches_and_of_the_file_are_known(tmp_path: Path) -> None:
    storage = EmbeddedStorage()
    for number in range(3):
        storage.start(tmp_path / "skyfarer.duckdb", UTC)
        assert known(storage, *"xyz") == set("xyz"[:number])
        unsampled = pa.table({"segment_id": [f"u{number}"], "minute": [MINUTE]})
        storage.apply(batch(number, number + 1, [segment("xyz"[number])], unsampled=unsampled))
        came = {*"xyz"[: number + 1], *(f"u{n}" for n in range(number + 1))}
        assert known(storage, *"xyz", "u0", "u1", "u2") == came
        storage.stop()


def test_many_segments_that_came_are_found_at_once(storage: EmbeddedStorage) -> None:
    ids = [f"segment-{n}" for n in range(3 * resends.LOOKED_UP_MAX)]
    storage.apply(batch(0, len(ids), [segment(one) for one in ids]))
    assert known(storage, *ids, "other") == set(ids)
    assert known(storage, *ids[:2], "other") == set(ids[:2])


def test_a_batch_that_failed_may_come_again(storage: EmbeddedStorage) -> None:
    assert known(storage, "a") == set()
    with pytest.raises(Exception, match=r"(?i)duplicate|constraint"):
        storage.apply(batch(0, 2, [segment("a"), segment("a")]))
    storage.apply(batch(0, 1, [segment("b")]))
    assert known(storage, "a", "b") == {"b"}


def test_segments_are_looked_for_in_the_days_they_are_of(storage: EmbeddedStorage) -> None:
    later_ms = (MINUTE + DAY_MINUTES) * 60_000
    storage.apply(batch(0, 2, [segment("a"), segment("b", later_ms)]))
    assert known(storage, "a", "b") == {"a"}
    assert known(storage, "a", "b", minute=MINUTE + DAY_MINUTES) == {"b"}

from __future__ import annotations

import pytest

from contracts.log_contract import LogContract, apply, found, log
from contracts.storage_contract import NOON, batch, segment
from skyfarer.oap.core.logs import LogCondition
from skyfarer.oap.storage.postgresql import PostgresStorage, tags


class TestPostgresLogs(LogContract):
    pass


def test_tags_of_logs_take_no_place_from_those_of_segments(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tags, "TAGS_A_DAY_MAX", 2)
    apply(storage, *(log(str(n), tags=[f"level={n}"]) for n in range(3)))
    storage.apply(batch(3, 4, [segment("a", tags=["http.method=GET", "http.method=PUT", "x=y"])]))
    apply(storage, log("late", tags=["level=late"]))
    noon = (20261115120000,) * 2
    assert storage.log_tag_values("level", noon, 9) == ["0", "1"]
    proposed = [value for key in ("http.method", "x") for value in storage.tag_values(key, noon, 9)]
    assert len(proposed) == 2


def test_logs_without_a_trace_are_found_as_such(storage: PostgresStorage) -> None:
    apply(storage, log("a", trace_id=""), log("b", NOON + 1), log("c", NOON + 2, trace_id=""))
    assert found(storage, trace_id="") == ["c", "a"]


def test_a_log_of_a_trace_is_found_by_the_index(storage: PostgresStorage) -> None:
    apply(storage, *(log(str(n), trace_id=f"t{n}" if n % 9 else "") for n in range(3000)))
    with storage._transaction() as cursor:
        cursor.execute("ANALYZE log_20261115")
    query = """EXPLAIN SELECT kind FROM log_20261115
        WHERE trace_id = %(trace_id)s AND trace_id <> ''"""
    with storage._reading() as cursor:
        plan = cursor.execute(query, {"trace_id": "t1"}, prepare=False).fetchall()
    assert "log_20261115_trace" in "\n".join(line for (line,) in plan)


def test_a_log_of_no_bytes_is_one_all_the_same(storage: PostgresStorage) -> None:
    apply(storage, log(b"", NOON + 1), {**log("x"), "payload": None}, log("é" * 9999, NOON + 2))
    page = storage.logs(LogCondition(), True, 0, 9, 99_999)
    assert [one.data for one in page] == [("é" * 9999).encode(), b"", None]

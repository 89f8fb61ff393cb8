from __future__ import annotations

from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.storage_contract import NOON, batch, segment
from skyfarer.oap.core.traces import TraceCondition, TraceOrder
from skyfarer.oap.storage.embedded import EmbeddedStorage, signatures

DAY_MS = 86_400_000
DAYS = (0, 1, 3)
WEEK = (20261113000000, 20261119235959)
FREQUENT = ["http.method=GET", "http.method=POST", "http.status_code=200"]
RARE = [f"order={number}" for number in range(30)]
MANY = [f"many={number}" for number in range(200)]
TAGS = st.lists(st.text(max_size=9), max_size=5)


@given(TAGS)
def test_the_signature_of_a_row_has_the_bits_of_each_of_its_tags(tags: list[str]) -> None:
    whole = signatures.of(tags)
    assert all(whole & signatures.of([tag]) == signatures.of([tag]) for tag in tags)
    assert 0 <= whole < 1 << signatures.WIDTH


@given(st.lists(st.one_of(st.none(), TAGS), max_size=9), st.integers(0, 9))
def test_signatures_of_a_batch_are_those_of_its_rows(rows: list[Any], cut: int) -> None:
    column = pa.array(rows, pa.list_(pa.string()))
    whole = pa.table({"tags": pa.chunked_array([column[:cut], column[cut:]], column.type)})
    for table, kept in ((whole, rows), (whole.slice(1), rows[1:])):
        made = signatures.signed(table)[signatures.COLUMN].to_pylist()
        assert made == [signatures.of(tags or []) for tags in kept]


def test_what_is_stored_keeps_its_meaning() -> None:
    assert signatures.of(["http.status_code=500"]) == 35201553530880
    assert signatures.of(["é=ü", "http.method=GET"]) == 143211659264258
    assert signatures.of([]) == 0


@pytest.fixture
def rows(storage: EmbeddedStorage) -> list[dict[str, Any]]:
    """Of three days that are not all neighbours. Some have so many tags that their signature rules
    out nothing: they are among the slowest that it finds for whatever tag."""
    random, rows = Random(3), list[dict[str, Any]]()
    for number in range(600):
        tags = [random.choice(FREQUENT[:2])] + FREQUENT[2:] * (random.random() < 0.5)
        tags += random.sample(RARE, random.randrange(3))
        tags += MANY if number % 100 == 0 else []
        at_ms = NOON + random.choice(DAYS) * DAY_MS + random.randrange(3_600_000)
        latency = random.randrange(90) + (60 if number % 100 == 0 else 0)
        rows.append(segment(f"s{number:03}", at_ms, latency=latency, tags=tags))
    storage.apply(batch(0, len(rows), rows))
    return rows


@pytest.mark.parametrize("order", TraceOrder)
@pytest.mark.parametrize("between", [None, WEEK, (20261115120500, 20261118123000)])
def test_a_search_by_tags_is_what_looking_at_every_row_gives(
    storage: EmbeddedStorage,
    rows: list[dict[str, Any]],
    order: TraceOrder,
    between: tuple[int, int] | None,
) -> None:
    random = Random(5)
    for _ in range(25):
        tags = tuple(random.sample([*FREQUENT, *RARE, MANY[0], "none=0"], random.choice((1, 1, 2))))
        least = random.choice((None, 20))
        having = [
            row
            for row in rows
            if set(tags) <= set(row["tags"])
            and row["latency"] >= (least or 0)
            and (between is None or between[0] <= second(row) <= between[1])
        ]
        having.sort(key=lambda row: (-row[order.value], row["segment_id"]))
        offset, limit = random.randrange(9), random.choice((1, 7, 400))
        condition = TraceCondition(tags=tags, latency_min_ms=least, between=between)
        found = storage.traces(condition, order, offset, limit)
        wanted = [row["segment_id"] for row in having[offset : offset + limit]]
        assert [brief.segment_id for brief in found] == wanted, (tags, offset, limit)


def second(row: dict[str, Any]) -> int:
    days, left = divmod(row["start_time"] - NOON, DAY_MS)
    minutes, seconds = divmod(left // 1000, 60)
    return (20261115 + days) * 10**6 + (12 + minutes // 60) * 10**4 + minutes % 60 * 100 + seconds


def test_segments_of_the_fifth_version_are_found_by_their_tags_beside_newer_ones(
    tmp_path: Path,
) -> None:
    path, storage = tmp_path / "skyfarer.duckdb", EmbeddedStorage()
    storage.start(path, UTC)
    old = [segment(f"old-{number}", latency=number, tags=[f"k={number}"]) for number in range(9)]
    storage.apply(batch(0, 9, old))
    storage.stop()
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP INDEX segment_20261115_trace_id")
        connection.execute("ALTER TABLE segment_20261115 DROP COLUMN tag_bits")
        connection.execute("CREATE INDEX segment_20261115_trace_id ON segment_20261115 (trace_id)")
        connection.execute("UPDATE schema_version SET version = 5")
    storage.start(path, UTC)
    storage.apply(batch(9, 10, [segment("new", latency=0, tags=["k=3"])]))
    found = storage.traces(TraceCondition(tags=("k=3",)), TraceOrder.DURATION, 0, 9)
    (signed,) = (
        storage._cursor()
        .execute("SELECT list(tag_bits = -1 ORDER BY segment_id) FROM segment_20261115")
        .fetchall()
    )
    storage.stop()
    assert [brief.segment_id for brief in found] == ["old-3", "new"]
    assert signed[0] == [False] + [True] * 9

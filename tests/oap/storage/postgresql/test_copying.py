from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from skyfarer.oap.storage.postgresql import PostgresStorage, copying
from skyfarer.oap.storage.postgresql.copying import ROWS_PER_WRITE

COLUMNS: dict[str, tuple[pa.Array, list[Any]]] = {
    "text": (pa.array(["é", None, "", "'\\\t\n"]), ["é", None, "", "'\\\t\n"]),
    "a large text": (pa.array(["a", None, "", "b"], pa.large_string()), ["a", None, "", "b"]),
    "bytes": (pa.array([b"\0\xff", None, b"", b"b"]), [b"\0\xff", None, b"", b"b"]),
    "numbers": (pa.array([2**63 - 1, None, -(2**63), 0]), [2**63 - 1, None, -(2**63), 0]),
    "small numbers": (pa.array([1, None, -1, 0], pa.int32()), [1, None, -1, 0]),
    "fractions": (pa.array([1.5, None, float("inf"), -0.0]), [1.5, None, float("inf"), 0.0]),
    "truth": (pa.array([True, None, False, True]), [True, None, False, True]),
    "a dictionary": (pa.array(["a", None, "a", "b"]).dictionary_encode(), ["a", None, "a", "b"]),
    "lists": (pa.array([["a", None], None, [], ["b"]]), [["a", None], None, [], ["b"]]),
    "lists of numbers": (pa.array([[1, None], None, [], [2]]), [[1, None], None, [], [2]]),
}


def brought(storage: PostgresStorage, rows: pa.Table) -> list[tuple[Any, ...]]:
    with storage._transaction() as cursor:
        copying.bring(cursor, "incoming", rows)
        return cursor.execute("SELECT * FROM incoming").fetchall()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_arrives_as_it_is(storage: PostgresStorage, name: str) -> None:
    column, expected = COLUMNS[name]
    rows = pa.table({"a": column})
    assert brought(storage, rows) == [(value,) for value in expected]
    assert brought(storage, rows.slice(1, 2)) == [(value,) for value in expected[1:3]]
    chunked = pa.concat_tables([rows.slice(2), rows])
    assert brought(storage, chunked) == [(value,) for value in expected[2:] + expected]


def test_a_nul_in_a_text_is_replaced_and_one_in_bytes_is_kept(storage: PostgresStorage) -> None:
    rows = pa.table(
        {
            "a": pa.array(["a\0b\0"]),
            "b": pa.array(["\0"], pa.large_string()),
            "c": pa.array(["\0"]).dictionary_encode(),
            "d": pa.array([["\0", "x"]]),
            "f": pa.array([b"\0"]),
        }
    )
    assert brought(storage, rows) == [("a�b�", "�", "�", ["�", "x"], b"\0")]


def test_more_rows_than_are_sent_at_once_arrive_in_order(storage: PostgresStorage) -> None:
    numbers = list(range(2 * ROWS_PER_WRITE + 1))
    assert brought(storage, pa.table({"a": numbers})) == [(number,) for number in numbers]


def test_no_rows_are_a_table_without_rows(storage: PostgresStorage) -> None:
    assert brought(storage, pa.table({"a": pa.array([], pa.int64())})) == []


def test_a_second_table_of_the_name_replaces_the_first(storage: PostgresStorage) -> None:
    with storage._transaction() as cursor:
        copying.bring(cursor, "incoming", pa.table({"a": ["a"]}))
        copying.bring(cursor, "incoming", pa.table({"b": [1]}))
        assert cursor.execute("SELECT b FROM incoming").fetchall() == [(1,)]
    with storage._transaction() as cursor:
        assert cursor.execute("SELECT to_regclass('pg_temp.incoming')").fetchall() == [(None,)]

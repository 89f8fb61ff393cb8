"""Columns of a bundle are read as they were written, whole or a row at a time."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.storage.merging import CODED, TABLE
from skyfarer.oap.storage.postgresql import bundles, tables

LONGS = st.integers(-3, 300) | st.integers(2**31, 2**33) | st.integers(-(2**63), 2**63 - 1)
KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
IDS = st.text("abAB01+/=._-", min_size=1, max_size=3)


def pieces(told: list[object], of_type: pa.DataType) -> pa.ChunkedArray:
    """Two, which are parts of others."""
    whole = pa.array([None, *told], of_type)
    middle = len(told) // 2
    return pa.chunked_array([whole.slice(1, middle), whole.slice(1 + middle)])


def agree(told: list[float | None], of_type: pa.DataType) -> None:
    octets = bundles.written(pieces(list(told), of_type))
    found = bundles.read_numbers(octets, len(told))
    assert found.type == of_type
    assert found.to_pylist() == told
    assert [bundles.number_at(octets, place, len(told)) for place in range(len(told))] == told


@given(st.lists(st.none() | LONGS, min_size=1, max_size=20))
def test_whole_numbers_are_read_as_they_were_written(told: list[float | None]) -> None:
    agree(told, pa.int64())


@given(st.lists(st.none() | st.floats(allow_nan=False), min_size=1, max_size=20))
def test_doubles_are_read_as_they_were_written(told: list[float | None]) -> None:
    agree(told, pa.float64())


def test_numbers_take_as_many_bytes_as_their_range_needs() -> None:
    lengths = [
        len(bundles.written(pa.chunked_array([pa.array([10**12, 10**12 + span])])))
        for span in (255, 2**16 - 1, 2**32 - 1, 2**32)
    ]
    assert [one - lengths[0] for one in lengths] == [0, 2, 6, 14]


@given(st.lists(st.none() | st.dictionaries(KEYS, LONGS, max_size=4), min_size=1, max_size=9))
def test_tables_are_read_as_they_were_written(told: list[dict[str, int] | None]) -> None:
    octets = bundles.written(pieces(list(told), TABLE))
    found = bundles.read_tables(octets)
    assert found.type == CODED
    plain = tables.plain(pa.chunked_array([found])).to_pylist()
    assert [dict(one) if one else None for one in plain] == [one or None for one in told]
    each = [bundles.table_at(octets, place, Merge.SUM) for place in range(len(told))]
    assert each == [one or None for one in told]


def test_a_null_in_a_key_is_what_it_becomes_where_it_is_merged() -> None:
    octets = bundles.written(pa.chunked_array([pa.array([[("a\0", 1), ("a�", 2)]], TABLE)]))
    assert bundles.table_at(octets, 0, Merge.SUM) == {"a�": 3}


@given(st.lists(IDS, min_size=1, max_size=9), IDS)
def test_an_id_is_found_wherever_it_stands(told: list[str], other: str) -> None:
    text = bundles.written_ids(pa.array(told))
    assert bundles.read_ids(text, len(told)).to_pylist() == told
    for one in {*told, other}:
        places = [place for place, known in enumerate(told) if known == one]
        assert list(bundles.places_of(one, text)) == places
        assert (bundles.line_of(one) in text) == bool(places)

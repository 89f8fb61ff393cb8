from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.base.units import MIB
from skyfarer.oap.core.storage import KEYS_MAX
from skyfarer.oap.storage.merging import TABLE
from skyfarer.oap.storage.postgresql import tables

ODD = "\ufeff\ufffe\r\t\n\v\f\x1a\x1c\x85\u2028\u2029\"'%,;\\ "
"""What readers of lines and columns are known to stumble over."""
KEYS = (
    st.sampled_from(["1", "20", "", "é", "a\tb", "a\nb", "%", "%09", "a\r", "\ufeffgpt", "gpt"])
    | st.text(ODD, max_size=4)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
)
VALUES = st.integers(0, 3) | st.integers(-(2**63), 2**63 - 1)
TABLES = st.lists(st.none() | st.dictionaries(KEYS, VALUES, max_size=4), max_size=6)


def maps(told: list[dict[str, int] | None]) -> pa.ChunkedArray:
    """In two pieces, which are parts of others."""
    whole = pa.array([None, *told], TABLE)
    return pa.chunked_array([whole.slice(1, len(told) // 2), whole.slice(1 + len(told) // 2)])


@given(TABLES)
def test_tables_are_read_as_they_were_written(told: list[dict[str, int] | None]) -> None:
    texts = tables.written(maps(told))
    assert len(texts) == len(told)
    found = [dict(table) if table else None for table in tables.read(texts).to_pylist()]
    assert found == [table or None for table in told]
    assert tables.read(texts.slice(1)).to_pylist() == tables.read(texts).to_pylist()[1:]


@given(TABLES)
def test_coded_tables_are_written_as_plain_ones(told: list[dict[str, int] | None]) -> None:
    texts = tables.written(maps(told))
    coded = tables.read_coded(texts)
    assert tables.written(pa.chunked_array([coded])).equals(texts)
    assert coded.to_pylist() == tables.read(texts).to_pylist()


def test_a_key_that_was_appended_again_is_read_as_often_as_it_stands_there() -> None:
    texts = pa.array(["a\t1\nb\t2\na\t3\n", None])
    assert tables.read(texts).to_pylist() == [[("a", 1), ("b", 2), ("a", 3)], None]


def test_a_key_may_begin_as_a_file_of_another_encoding_does() -> None:
    told = {"\ufeffgpt": 5, "gpt": 1}
    assert [dict(one) for one in tables.read(tables.written(maps([told]))).to_pylist()] == [told]


@pytest.mark.parametrize("told", [{"k" * 2 * MIB: 1}, {f"{n:040}": n for n in range(KEYS_MAX)}])
def test_a_key_and_a_table_may_be_long(told: dict[str, int]) -> None:
    (found,) = tables.read(tables.written(maps([told]))).to_pylist()
    assert dict(found) == told

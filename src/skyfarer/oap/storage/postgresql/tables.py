"""Tables of metric rows as texts, one line a key: what a batch brings is appended to what is there.

    key TAB value LF …

Of a key that stands there several times all values count. In a key `%`, TAB and LF are written as
in a URL. Everything here is done for whole columns, but for the few tables of an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.storage.merging import TABLE

ENTRY_BYTES_MIN: Final = 3
_WRITTEN: Final = {"%": "%25", "\t": "%09", "\n": "%0A"}
_NONE: Final = pa.scalar(None, pa.string())


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, float):
        return one + other
    return (one + other + 2**63) % 2**64 - 2**63


BOTH: Final[Mapping[Merge, Callable[[Any, Any], Any]]] = {
    Merge.SUM: _added,
    Merge.MAX: max,
    Merge.MIN: min,
}
"""How two numbers, or two values of a table's key, become one."""


def written(tables: pa.ChunkedArray) -> pa.Array:
    """Null for a table that is null or empty."""
    maps = pa.concat_arrays([*tables.chunks, pa.array([], TABLE)])
    keys = maps.keys
    for plain, instead in _WRITTEN.items():
        keys = _replaced(keys, plain, instead)
    values = maps.items.fill_null(0).cast(pa.string())
    entries = pc.binary_join_element_wise(keys, values, "\t")
    lists = pa.ListArray.from_arrays(maps.offsets, entries)
    texts = pc.binary_join_element_wise(pc.binary_join(lists, "\n"), "", "\n")
    return pc.if_else(pc.equal(pc.list_value_length(lists), 0), _NONE, texts)


def read(texts: pa.Array) -> pa.MapArray:
    """The tables again, with a key as often as it stands there; an empty text is a null."""
    lines = pc.split_pattern(pc.utf8_rtrim(texts, "\n"), "\n")
    lines = pc.if_else(pc.equal(texts, ""), pa.scalar(None, lines.type), lines)
    entries = pc.split_pattern(lines.flatten(), "\t")
    keys, values = pc.list_element(entries, 0), pc.list_element(entries, 1)
    for plain, instead in reversed(_WRITTEN.items()):
        keys = _replaced(keys, instead, plain)
    counts = pc.list_value_length(lines).fill_null(0)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(counts.cast("int64"))])
    return pa.MapArray.from_arrays(
        offsets.cast(pa.int32()), keys, values.cast(pa.int64()), mask=lines.is_null()
    )


def table(text: str, merge: Merge) -> dict[str, int]:
    found: dict[str, int] = {}
    both = BOTH[merge]
    for line in text.rstrip("\n").split("\n"):
        key, _, digits = line.partition("\t")
        for plain, instead in reversed(_WRITTEN.items()):
            key = key.replace(instead, plain)
        value = int(digits)
        found[key] = both(found[key], value) if key in found else value
    return found


def _replaced(texts: pa.Array, plain: str, instead: str) -> pa.Array:
    if not pc.any(pc.match_substring(texts, plain)).as_py():
        return texts
    return pc.replace_substring(texts, plain, instead)

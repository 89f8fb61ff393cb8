"""Tables of metric rows as texts, one line a key: what a batch brings is appended to what is there.

    key TAB value LF …

Of a key that stands there several times all values count. In a key `%`, TAB and LF are written as
in a URL. Everything here is done for whole columns, but for the few tables of an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.storage.merging import TABLE

ENTRY_BYTES_MIN: Final = 3
ENTRIES_A_LINE_MIN: Final = 4
"""Where there are fewer entries for a line that may come, each is written by itself."""
_LINE: Final = ord("\n")
_TAB, _END, _NOTHING = pa.scalar("\t"), pa.scalar("\n"), pa.scalar("")
_WRITTEN: Final = {"%": "%25", "\t": "%09", "\n": "%0A"}


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
    """Of plain ones or coded ones; null for a table that is null or empty. The lines of a table
    are side by side already: where each begins is all that has to be found."""
    maps = pa.concat_arrays([*tables.chunks, pa.array([], tables.type)])
    bounds = maps.offsets.to_numpy()
    first, count = int(bounds[0]), int(bounds[-1] - bounds[0])
    lines = _lines(maps.keys.slice(first, count), maps.items.slice(first, count))
    ends = np.frombuffer(lines.buffers()[1] or bytes(4), np.int32)
    filled = np.diff(bounds) > 0
    known = None if filled.all() else pa.py_buffer(np.packbits(filled, bitorder="little"))
    buffers = [known, pa.py_buffer(ends[bounds - first]), lines.buffers()[2]]
    return pa.Array.from_buffers(pa.string(), len(maps), buffers)


def _lines(keys: pa.Array, items: pa.Array) -> pa.Array:
    """One an entry, one after the other. Few keys with small numbers, as those of percentiles are,
    make few different lines: each is written once."""
    named = keys.dictionary_encode()
    names = named.dictionary
    for plain, instead in _WRITTEN.items():
        names = _replaced(names, plain, instead)
    if not len(keys):
        return pa.array([], pa.string())
    values = (items.fill_null(0) if items.null_count else items).to_numpy()
    least = int(values.min())
    span = int(values.max()) - least + 1
    if span * len(names) * ENTRIES_A_LINE_MIN > len(keys):
        return _joined(names.take(named.indices), pa.array(values))
    cells = np.arange(span * len(names))
    lines = _joined(names.take(pa.array(cells // span)), pa.array(cells % span + least))
    places = named.indices.to_numpy() * np.int32(span) + (values - least).astype(np.int32)
    return lines.take(pa.array(places))


def _joined(keys: pa.Array, values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(keys, _TAB, values.cast(pa.string()), _END, _NOTHING)


def read(texts: pa.Array) -> pa.MapArray:
    """The tables again, with a key as often as it stands there; an empty text is a null."""
    return _plain(read_coded(texts))


def plain(coded: pa.ChunkedArray) -> pa.ChunkedArray:
    """Coded tables, without the numbers of their keys."""
    return pa.chunked_array([_plain(chunk) for chunk in coded.chunks], TABLE)


def _plain(coded: pa.MapArray) -> pa.MapArray:
    keys = coded.keys.dictionary.take(coded.keys.indices)
    return pa.MapArray.from_arrays(coded.offsets, keys, coded.items, mask=coded.is_null())


def read_coded(texts: pa.Array) -> pa.MapArray:
    """As `read`, its keys numbered. Each different line is taken apart once."""
    texts = texts.fill_null("") if texts.null_count else texts
    starts = texts.offset + np.arange(len(texts) + 1)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[starts] if len(texts) else np.zeros(1)
    octets = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[int(offsets[0]) : int(offsets[-1])]
    ends = np.append(0, np.flatnonzero(octets == _LINE) + 1).astype(np.int32)
    bounds = np.searchsorted(ends, offsets - offsets[0]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(octets)]
    lines = pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers).dictionary_encode()
    keys, values = _entries(lines.dictionary)
    for plain, instead in reversed(_WRITTEN.items()):
        keys = _replaced(keys, instead, plain)
    named, places = keys.dictionary_encode(), lines.indices.to_numpy()
    indices, found = named.indices.to_numpy()[places], values.to_numpy()[places]
    named = pa.DictionaryArray.from_arrays(pa.array(indices), named.dictionary)
    nulls = pa.array(np.diff(bounds) == 0)
    return pa.MapArray.from_arrays(pa.array(bounds), named, pa.array(found), mask=nulls)


def _entries(lines: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Keys and values. No reader of files is asked, which would look for more than TAB and LF."""
    both = pc.split_pattern(pc.ascii_rtrim(lines, "\n"), "\t").flatten()
    places = np.arange(0, len(both), 2)
    keys, values = both.take(pa.array(places)), both.take(pa.array(places + 1))
    return keys, values.cast(pa.int64())


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
    octets = texts.buffers()[2]
    if octets is None or plain.encode() not in octets.to_pybytes():
        return texts
    return pc.replace_substring(texts, plain, instead)

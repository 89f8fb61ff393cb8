"""What Arrow lacks for making messages out of other messages, on whole columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]

# The two digits of each byte, as they lie in memory.
_DIGITS = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)


def text_of(attributes: pa.ListArray, key: str) -> pa.StringArray:
    """OTLP's attribute of that name as text, the first of them; null when none is there, or it is
    empty, or neither text nor number."""
    flat = pc.list_flatten(attributes)
    here = pc.equal(pc.struct_field(flat, "key"), key)
    texts = texts_of(pc.struct_field(flat.filter(here), "value"))
    rows = pc.list_parent_indices(attributes).filter(here).to_numpy()
    places = np.full(len(attributes), -1, dtype=np.int64)
    places[rows[::-1]] = np.arange(len(rows))[::-1]  # the first of a name is written last
    return texts.take(pa.array(places, mask=places < 0))


def pairs_of(attributes: pa.ListArray, names: Mapping[str, str], form: pa.ListType) -> pa.ListArray:
    """The attributes of those names that are text or a number, as pairs under their new names."""
    flat = pc.list_flatten(attributes)
    at = pc.index_in(pc.struct_field(flat, "key"), pa.array(list(names)))
    here = pc.is_valid(at)
    texts = texts_of(pc.struct_field(flat.filter(here), "value"))
    told = pc.is_valid(texts)
    keys = pa.array(list(names.values())).take(at.filter(here).filter(told))
    rows = pc.list_parent_indices(attributes).filter(here).filter(told).to_numpy()
    counts = np.bincount(rows, minlength=len(attributes))
    offsets = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(counts, dtype=np.int32)])
    pairs = struct_of({"key": keys, "value": texts.filter(told)}, form.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=form)


def texts_of(values: pa.StructArray) -> pa.StringArray:
    """Of OTLP's values; null for what is empty, or neither text nor number."""
    words, number = (pc.struct_field(values, name) for name in ("string_value", "int_value"))
    digits = pc.if_else(pc.equal(number, 0), None, number.cast(pa.string()))
    return pc.if_else(pc.equal(words, ""), digits, words)


def is_id(column: pa.BinaryArray, size: int) -> Mask:
    """Where there are exactly so many bytes, not all of them zero."""
    right = pc.equal(pc.binary_length(column), size)
    sound = pc.and_(right, pc.not_equal(column, bytes(size)))
    found: Mask = sound.to_numpy(zero_copy_only=False)
    return found


def hex_texts(columns: Sequence[pa.BinaryArray], sizes: Sequence[int]) -> pa.StringArray:
    """The ids of a row in hex, joined by dots; empty where any of them is no id of its size."""
    sound = np.logical_and.reduce([is_id(*of) for of in zip(columns, sizes, strict=True)])
    here, dot = pa.array(sound), np.full((int(sound.sum()), 1), ord("."), dtype=np.uint8)
    parts: list[npt.NDArray[np.uint8]] = []
    for column, size in zip(columns, sizes, strict=True):
        raw = b"".join(column.filter(here).to_pylist())
        digits = _DIGITS[np.frombuffer(raw, dtype=np.uint8)]
        parts += [digits.view(np.uint8).reshape(-1, 2 * size), dot]
    texts = np.concatenate(parts[:-1], axis=1)
    ends = np.cumsum(np.where(sound, texts.shape[1], 0), dtype=np.int32)
    offsets = pa.py_buffer(np.concatenate([np.zeros(1, dtype=np.int32), ends]))
    return pa.StringArray.from_buffers(len(sound), offsets, pa.py_buffer(texts.tobytes()))


def struct_of(fields: Mapping[str, pa.Array], form: pa.StructType) -> pa.StructArray:
    """KeyError for a field that is not made."""
    return pa.StructArray.from_arrays([fields[one.name] for one in form], fields=list(form))


def list_of(elements: pa.Array, present: Mask, form: pa.ListType) -> pa.ListArray:
    """Lists of the next element where it is present, and empty ones elsewhere."""
    offsets = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(present, dtype=np.int32)])
    return pa.ListArray.from_arrays(pa.array(offsets), elements, type=form)

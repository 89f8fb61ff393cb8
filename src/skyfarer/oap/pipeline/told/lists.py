"""What Arrow lacks for lists, in whole columns.

Lists lie one behind the other: `bounds` are where each begins, and where the last one ends.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Places: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


def bounds_of(lists: pa.ListArray) -> Places:
    found: Places = lists.offsets.to_numpy().astype(np.int64)
    return found


def reduced(how: np.ufunc, values: npt.NDArray[Any], bounds: Places) -> pa.Array:
    """One of each list; null of an empty one."""
    filled = bounds[1:] > bounds[:-1]
    if filled.all() and len(filled):
        return pa.array(how.reduceat(values[: bounds[-1]], bounds[:-1]))
    found = np.zeros(len(filled), values.dtype)
    if filled.any():
        found[filled] = how.reduceat(values[: bounds[-1]], bounds[:-1][filled])
    return pa.array(found, mask=~filled)


def last_of(chosen: Mask, bounds: Places) -> pa.Array:
    """The place of the last one that is chosen of each list; null where none is."""
    places = np.where(chosen, np.arange(len(chosen)), -1)
    found = reduced(np.maximum, places, bounds)
    return pc.if_else(pc.less(found, 0), None, found)


def owners_of(places: Places, bounds: Places) -> Places:
    """In which list each of them is."""
    found: Places = np.searchsorted(bounds, places, side="right") - 1
    return found


def listed(values: pa.Array, owners: Places, count: int) -> pa.ListArray:
    """So many lists of the values, which are in the order of their owners."""
    ends = np.cumsum(np.bincount(owners, minlength=count), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(np.append(np.int32(0), ends)), values)


def mask_of(asked: pa.Array | pa.ChunkedArray) -> Mask:
    """Null is no."""
    found: Mask = pc.fill_null(asked, False).to_numpy(zero_copy_only=False)
    return found


def cut(texts: pa.Array, chars_max: int) -> pa.Array:
    """By characters. To count them takes time, so texts of as few bytes are left as they are."""
    longest = pc.max(pc.binary_length(texts)).as_py()
    return texts if (longest or 0) <= chars_max else pc.utf8_slice_codeunits(texts, 0, chars_max)

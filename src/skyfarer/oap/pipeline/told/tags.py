"""The tags that a segment or a log is found by."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.traces import TAG_CHARS_MAX
from skyfarer.oap.pipeline.told.lists import Places, listed, mask_of, owners_of

TAGS_MAX: Final = 1_000
"""Of one segment or log, the first ones."""


def found_by(pairs: pa.StructArray, bounds: Places, keys: tuple[str, ...]) -> pa.ListArray:
    """`key=value` of the pairs with these keys, each once in a list, in their order."""
    names, values = pairs.field("key"), pairs.field("value")
    here = np.flatnonzero(mask_of(pc.is_in(names, pa.array(keys, pa.string()))))
    at = pa.array(here)
    texts = pc.binary_join_element_wise(names.take(at), values.take(at), "=")
    owners = owners_of(here, bounds)
    kept = _first_ones(owners, texts, _fitting(texts))
    if len(kept) < len(here):
        texts, owners = texts.take(pa.array(kept)), owners[kept]
    return listed(texts, owners, len(bounds) - 1)


def _fitting(texts: pa.StringArray) -> Places:
    """The places of those that are not too long. No text has fewer bytes than characters."""
    if (pc.max(pc.binary_length(texts)).as_py() or 0) <= TAG_CHARS_MAX:
        return np.arange(len(texts))
    return np.flatnonzero(mask_of(pc.less_equal(pc.utf8_length(texts), TAG_CHARS_MAX)))


def _first_ones(owners: Places, texts: pa.StringArray, among: Places) -> Places:
    """The places of those that their owner has not had before, TAGS_MAX of each at most."""
    coded = texts.dictionary_encode()
    owned = (owners * len(coded.dictionary) + coded.indices.to_numpy())[among]
    # They are numbered as they come: the first of its kind has a number above all before it.
    numbers = pa.array(owned).dictionary_encode().indices.to_numpy()
    among = among[np.diff(np.maximum.accumulate(numbers), prepend=-1) > 0]
    of = owners[among]
    if len(of) and np.bincount(of).max() > TAGS_MAX:
        nth = np.arange(len(of)) - np.searchsorted(of, of)
        among = among[nth < TAGS_MAX]
    return among

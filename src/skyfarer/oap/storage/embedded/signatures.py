"""The tags of a segment as one number: what it rules out need not be read.

    tag_bits BIGINT     BITS of WIDTH bits for each tag, from the checksum of its text; all bits in
                        a segment that was stored before there were signatures

A row without all bits of a tag does not have it. One that has them may still not have the tag:
whoever looks by signature looks at the tags of what is found. DuckDB packs numbers that leave bits
unused, and reads them in a third of the time of a list of texts (ADR 022); of numbers that leave
none it looks for repetitions instead, which is slow.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

COLUMN: Final = "tag_bits"
UNKNOWN: Final = -1
BITS: Final = 4
WIDTH: Final = 48
_SPREAD: Final = 0x9E3779B97F4A7C15  # checksums of like texts differ in few bits


def of(tags: Iterable[str]) -> int:
    """Of all the tags together. It is stored: it must never change."""
    return reduce(or_, map(_bits, tags), 0)


def test(tags: Iterable[str]) -> str:
    """What a row with all these tags passes, in SQL."""
    bits = of(tags)
    return f"({COLUMN} & {bits}) = {bits}"


def signed(rows: pa.Table) -> pa.Table:
    """With the signature of each row's `tags`."""
    tags = rows["tags"].combine_chunks()
    texts = pc.list_flatten(tags).fill_null("").dictionary_encode()
    owners = pc.list_parent_indices(tags).to_numpy()
    each = np.array([of([text]) for text in texts.dictionary.to_pylist()], np.int64)
    bits = np.zeros(rows.num_rows, np.int64)
    np.bitwise_or.at(bits, owners, each[texts.indices.to_numpy()])
    return rows.append_column(COLUMN, pa.array(bits))


def _bits(tag: str) -> int:
    mixed, bits = zlib.crc32(tag.encode()) * _SPREAD % (1 << 64) >> 24, 0
    for _ in range(BITS):
        mixed, place = divmod(mixed, WIDTH)
        bits |= 1 << place
    return bits

"""Rows that say nothing new of what there is.

Batch after batch brings the same services, endpoints, relations and aliases; within a minute all
but the first of them change nothing. The rows that were stored lately are remembered, so that only
others are taken to the database.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.storage.merging import Numbers

KEYS_MAX: Final = 50_000


class Seen:
    """For one writer at a time: `begin`, any number of `fresh`, and `settle` once all is durable.

    What was not settled is forgotten with the next `begin`. Past KEYS_MAX rows it starts afresh,
    with none of a batch that has more by itself: that costs time and nothing else.
    """

    def __init__(self) -> None:
        self._known: set[tuple[object, ...]] = set()
        self._new: set[tuple[object, ...]] = set()

    def begin(self) -> None:
        self._new = set()

    def fresh(self, source: str, rows: pa.Table, buckets: Numbers) -> npt.NDArray[np.bool_]:
        """Which rows are neither known nor repeated; `buckets` are their minutes."""
        columns = [rows[name].to_pylist() for name in ENTITY_COLUMNS]
        found = np.empty(rows.num_rows, np.bool_)
        for place, key in enumerate(zip(buckets.tolist(), *columns, strict=True)):
            named = (source, *key)
            found[place] = named not in self._known and named not in self._new
            self._new.add(named)
        return found

    def settle(self) -> None:
        if len(self._new) > KEYS_MAX:
            self._known = set()
        elif len(self._known) + len(self._new) > KEYS_MAX:
            self._known = self._new
        else:
            self._known |= self._new
        self._new = set()

"""Minutes that a batch brings, merged with the stored rows of these minutes, their hours and days.

What is brought is taken apart once, and counts three times. A row is known by two numbers, that of
its entity among the ones brought and that of its bucket: ids are looked at as texts only to number
the entities. Merged rows lie in the order of minutes, hours and days, and of the entities as they
were brought.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.merging import Numbers, Part, together

KEYS: Final = ("entity_id", "time_bucket")
CELLS_A_ROW_MAX: Final = 8
"""Where entities and buckets make more cells than that, groups are found by sorting."""


class Levels:
    """Rows of minutes of entities, to be merged into those of each precision."""

    def __init__(self, rows: pa.Table, minutes: Numbers) -> None:
        ids = rows["entity_id"].combine_chunks()
        self._rows, self._entities = rows, ids.dictionary_encode()
        self._minutes, self._minute_of = np.unique(minutes, return_inverse=True)

    def touched(self) -> pa.Table:
        """The keys of all rows that they are merged into."""
        ids = self._entities.dictionary_decode()
        buckets = [pa.array(self._of_rows(self._minutes // one)) for one in PRECISIONS]
        return pa.table(
            [pa.chunked_array([ids] * len(buckets)), pa.chunked_array(buckets)], names=KEYS
        )

    def merged(
        self, stored: pa.Table, merges: Mapping[str, Merge], bounds: Mapping[str, int]
    ) -> pa.Table:
        """With the `stored` rows of these keys; tables are coded."""
        buckets = np.concatenate([np.unique(self._minutes // one) for one in PRECISIONS])
        cells = [self._stored_cells(stored, buckets)]
        for precision in PRECISIONS:
            rows = _places(buckets, self._minutes // precision) * self._width
            cells.append(self._of_rows(rows) + self._entities.indices.to_numpy())
        found, (of_stored, *of_brought) = _numbered(cells, len(buckets) * self._width)
        parts = [
            Part(stored, [of_stored], np.zeros(stored.num_rows, np.int64)),
            Part(self._rows, of_brought, np.ones(self._rows.num_rows, np.int64)),
        ]
        places, entities = np.divmod(found, self._width)
        columns = {
            "entity_id": self._entities.dictionary.take(pa.array(entities)),
            "time_bucket": pa.array(buckets[places]),
            **together(parts, len(found), merges, bounds, coded=merges),
        }
        return pa.table(columns)

    @property
    def _width(self) -> int:
        return len(self._entities.dictionary)

    def _of_rows(self, of_minutes: Numbers) -> Numbers:
        return of_minutes[self._minute_of]

    def _stored_cells(self, stored: pa.Table, buckets: Numbers) -> Numbers:
        entities: Numbers = pc.index_in(stored["entity_id"], self._entities.dictionary).to_numpy()
        return _places(buckets, stored["time_bucket"].to_numpy()) * self._width + entities


def _places(among: Numbers, wanted: Numbers) -> Numbers:
    order = np.argsort(among)
    return order[np.searchsorted(among, wanted, sorter=order)]


def _numbered(cells: list[Numbers], cells_count: int) -> tuple[Numbers, list[Numbers]]:
    """The cells that have rows, in order, and of all rows the number of theirs."""
    if cells_count > CELLS_A_ROW_MAX * sum(map(len, cells)):
        found, numbers = np.unique(np.concatenate(cells), return_inverse=True)
        return found, np.split(numbers, np.cumsum([len(some) for some in cells])[:-1])
    there = np.zeros(cells_count, np.bool_)
    for some in cells:
        there[some] = True
    found = np.flatnonzero(there)
    numbers = np.empty(cells_count, np.int64)
    numbers[found] = np.arange(len(found))
    return found, [numbers[some] for some in cells]

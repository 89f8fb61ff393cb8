"""How much of the queue one micro-batch takes.

Records are bounded by number, and by weight: what a record costs on its way through Spark. That is
its bytes, but for an export several times as much, since each span or log in it is a row that
carries its resource along. After an outage a whole queue may wait, and must not come at once.
"""

from __future__ import annotations

import numpy as np

from skyfarer.base.units import MIB
from skyfarer.oap.pipeline.sources.rows import EXPORTS, INDEX
from skyfarer.queue.reader import Reader

WEIGHT_MAX = 256 * MIB
"""More than 100,000 segments of 1.5 KB."""
OF_EXPORT = 8
"""A span of 200 bytes is a row of 600 with its resource, twice in memory."""


def reach(queue: Reader, start: int, end: int, weight_max: int) -> int:
    """Where a batch from `start` ends: at `end`, or before what would be too much. It always has
    one record."""
    left = weight_max
    for first, index in queue.indexes(start, end):
        entries = np.frombuffer(index, dtype=INDEX)
        times = np.where(np.isin(entries["kind"], EXPORTS), OF_EXPORT, 1)
        total = np.cumsum(entries["length"].astype(np.int64) * times)
        fits = int(np.searchsorted(total, left, side="right"))
        if fits < len(entries):
            return max(start + 1, first + fits)
        left -= int(total[-1])
    return end

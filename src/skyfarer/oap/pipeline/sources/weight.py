"""How much of the queue one micro-batch takes.

Records are bounded by number, and by weight: what a record costs on its way through Spark. That is
its bytes, but for an export those of all the parts it is cut into, twice, since each span or log in
it is a row that carries its resource along. After an outage a whole queue may wait, and must not
come at once; and what the driver is told of a batch must fit into one piece of Arrow's, 2 GiB.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skyfarer.base.units import MIB
from skyfarer.oap.pipeline.sources.exports import bytes_when_cut
from skyfarer.oap.pipeline.sources.rows import EXPORTS, INDEX
from skyfarer.queue.reader import Reader

WEIGHT_MAX = 256 * MIB
"""More than 100,000 segments of 1.5 KB."""
OF_PARTS = 2
"""A part is in memory as the row of its span, and as its bytes."""


def reach(queue: Reader, start: int, end: int, weight_max: int) -> int:
    """Where a batch from `start` ends: at `end`, or before what would be too much. It always has
    one record. What lies behind the queue file in which it ends is not looked at."""
    left = weight_max
    for first, index, data in queue.unchecked(start, end):
        entries = np.frombuffer(index, dtype=INDEX)
        total = np.cumsum(_weights(entries, data))
        fits = int(np.searchsorted(total, left, side="right"))
        if fits < len(entries):
            return max(start + 1, first + fits)
        left -= int(total[-1])
    return end


def _weights(entries: npt.NDArray[np.void], data: memoryview) -> npt.NDArray[np.int64]:
    weights = entries["length"].astype(np.int64)
    for place in np.flatnonzero(np.isin(entries["kind"], EXPORTS)):
        begin, length = int(entries["start"][place]), int(entries["length"][place])
        weights[place] += OF_PARTS * bytes_when_cut(bytes(data[begin : begin + length]))
    return weights

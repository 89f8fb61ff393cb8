"""Streams of records that `disable(…)` names: nothing of them is stored."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.core.streams.records import EVENT, LOG


def but_disabled(analysed: Analysed, disabled: Set[str]) -> Analysed:
    """The same without them. Segments are left out earlier: their ids are needed."""
    off = [slow.name for slow in Slow if slow.value in disabled]
    if off and analysed.slow is not None:
        kept = analysed.slow.filter(pc.invert(pc.is_in(analysed.slow["what"], pa.array(off))))
        analysed = replace(analysed, slow=kept if kept.num_rows else None)
    if LOG.name in disabled:
        analysed = replace(analysed, logs=None)
    if EVENT.name in disabled:
        analysed = replace(analysed, events=None)
    return analysed

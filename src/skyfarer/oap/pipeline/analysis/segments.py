"""One form for every segment, whichever protocol it came by.

What OTLP and the v2 protocol say is brought into the column `segment`, in the shape that v3's
segments are decoded to, so that everything after this speaks of segments alone.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.pipeline.analysis import otlp, v2
from skyfarer.wire.rpc import Kind

TRANSLATED = frozenset({Kind.OTLP_TRACES, Kind.V2_SEGMENT})


def one_form(rows: DataFrame, kinds: Collection[int], inventories: InventoryReader) -> DataFrame:
    """The rows with `segment` filled. Of the translated kinds only those in `kinds` are looked at:
    a batch without any is left as it is, at no cost. May read storage, for the names of v2."""
    if Kind.OTLP_TRACES in kinds:
        rows = otlp.translated(rows)
    if Kind.V2_SEGMENT in kinds:
        rows = v2.translated(rows, inventories)
    return rows

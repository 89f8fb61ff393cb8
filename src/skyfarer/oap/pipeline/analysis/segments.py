"""One form for every segment and report, whichever protocol it came by.

Segments of OTLP leave the worker in the shape that v3's are decoded to. What v2 sends speaks in
ids, and their names are in storage: a segment is brought into the column `segment` here, and
`reports` get the names of their instance, so that everything after this knows one form alone.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.pipeline.analysis import v2
from skyfarer.wire.rpc import Kind

TRANSLATED = frozenset({Kind.V2_SEGMENT, Kind.V2_JVM_METRICS, Kind.V2_CLR_METRICS})


def one_form(rows: DataFrame, kinds: Collection[int], inventories: InventoryReader) -> DataFrame:
    """The rows with `segment` filled and `reports` named; what was translated is in `v2.WHOLE` with
    all that is told of it. A batch whose `kinds` need no translation is left as it is, at no cost.
    May read storage, for the names of v2."""
    return v2.translated(rows, inventories) if TRANSLATED.intersection(kinds) else rows

"""One form for every segment, whichever protocol it came by.

Those of OTLP leave the worker in the shape that v3's are decoded to. A v2 segment speaks in ids,
and their names are in storage: it is brought into the column `segment` here, so that everything
after this speaks of segments alone.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.pipeline.analysis import v2
from skyfarer.wire.rpc import Kind

TRANSLATED = frozenset({Kind.V2_SEGMENT})


def one_form(rows: DataFrame, kinds: Collection[int], inventories: InventoryReader) -> DataFrame:
    """The rows with `segment` filled. A batch whose `kinds` need no translation is left as it is,
    at no cost. May read storage, for the names of v2."""
    return v2.translated(rows, inventories) if TRANSLATED.intersection(kinds) else rows

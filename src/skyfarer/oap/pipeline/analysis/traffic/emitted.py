"""The whole way from decoded rows to emitted ones."""

from __future__ import annotations

from pyspark.sql import DataFrame

from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic.callers import calls_of
from skyfarer.oap.pipeline.analysis.traffic.kinds import exploded
from skyfarer.oap.pipeline.analysis.traffic.spans import spans_of
from skyfarer.oap.pipeline.analysis.traffic.texts import Names
from skyfarer.oap.pipeline.analysis.traffic.wanted import Wanted


def emitted(
    rows: DataFrame, settings: AnalysisSettings, wanted: Wanted, aliases: DataFrame | None
) -> DataFrame:
    """A row for every item that the segments among `rows` say of a source. Nothing runs yet.

    `aliases` has the columns address (unique), alias_service and alias_instance: which service is
    known to be at an address. It is broadcast; None when there are none. Rows with a `reason`, and
    those without a segment, say nothing.
    """
    spans = spans_of(rows, settings, wanted, aliases)
    return exploded(calls_of(spans, settings), Names(settings.naming), wanted)

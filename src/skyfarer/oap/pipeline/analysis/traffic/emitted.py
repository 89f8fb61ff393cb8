"""The whole way from decoded rows to emitted ones."""

from __future__ import annotations

from pyspark.sql import DataFrame

from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic.callers import Calls
from skyfarer.oap.pipeline.analysis.traffic.kinds import Shown
from skyfarer.oap.pipeline.analysis.traffic.spans import Spans
from skyfarer.oap.pipeline.analysis.traffic.texts import Names
from skyfarer.oap.pipeline.analysis.traffic.wanted import Wanted


class Traffic:
    """Needs a session, and is of that session: its expressions are made once, for all batches."""

    def __init__(self, settings: AnalysisSettings, wanted: Wanted) -> None:
        self._spans = Spans(settings, wanted)
        self._calls = Calls(settings)
        self._shown = Shown(Names(settings.naming), wanted)

    def of(self, rows: DataFrame, aliases: DataFrame | None) -> DataFrame:
        """A row for every item that the segments among `rows` say of a source. Nothing runs yet.

        `aliases` has the columns address (unique), alias_service and alias_instance: which service
        is known to be at an address. It is broadcast; None when there are none. Rows with a
        `reason`, and those without a segment, say nothing.
        """
        return self._shown.of(self._calls.of(self._spans.of(rows, aliases)))


def emitted(
    rows: DataFrame, settings: AnalysisSettings, wanted: Wanted, aliases: DataFrame | None
) -> DataFrame:
    """`Traffic` for one batch alone."""
    return Traffic(settings, wanted).of(rows, aliases)

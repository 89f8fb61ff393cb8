"""From the decoded rows of a batch to what it adds to every metric: one job of Spark's for all that
traces say, and one for all that agents report of themselves.

rows --traffic--> what each span says of whom --lowering--> sums by entity and minute --folding-->
one row an entity and minute, with tables where a metric has one; reports go the same way
"""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame

from skyfarer.oap.core.entities import MESHED, REPORTED, TRACED
from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.analysis import reports
from skyfarer.oap.pipeline.analysis.reports import Reported
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic import Traffic, attribute, wanted_by
from skyfarer.oap.pipeline.folding import folded
from skyfarer.oap.pipeline.lowering import Lowered, lowered


class Metrics:
    """All that is asked of a batch at once, of one session: nothing is kept between batches but
    the expressions, which are made at the first one, and the aliases while they are the same
    table. One thread at a time."""

    def __init__(self, plan: Plan, settings: AnalysisSettings) -> None:
        self._plan = plan.of(TRACED)
        self._reported, self._meshed = plan.of(REPORTED), plan.of(MESHED)
        self._settings = settings
        self._aliases: pa.Table | None = None
        self._known: DataFrame | None = None

    def of(self, rows: DataFrame, aliases: pa.Table | None = None) -> dict[str, Deltas]:
        """What traces say, by source. Blocks for one job of Spark's."""
        return folded(self.frame(rows, aliases).toArrow(), self._plan)

    def of_reports(self, rows: DataFrame) -> dict[str, Deltas]:
        """The same of what agents report."""
        emitted = self._rows_of_reports.of(rows, REPORTED)
        return folded(self._reports.of(emitted).toArrow(), self._reported)

    def of_mesh(self, rows: DataFrame) -> dict[str, Deltas]:
        """The same of what a mesh says beside traces: of the same sources."""
        emitted = self._rows_of_reports.of(rows, MESHED)
        return folded(self._mesh.of(emitted).toArrow(), self._meshed)

    def frame(self, rows: DataFrame, aliases: pa.Table | None = None) -> DataFrame:
        """The query of that job. `aliases` as `core.storage.Reader.aliases` has them."""
        if aliases is not self._aliases:
            told = aliases is not None and aliases.num_rows
            self._known = rows.sparkSession.createDataFrame(aliases) if told else None
            self._aliases = aliases
        traffic, lowered_plan = self._expressions
        return lowered_plan.of(traffic.of(rows, self._known))

    @cached_property
    def _rows_of_reports(self) -> Reported:
        return Reported(self._settings.naming)

    @cached_property
    def _reports(self) -> Lowered:
        return lowered(self._reported, reports.attribute)

    @cached_property
    def _mesh(self) -> Lowered:
        return lowered(self._meshed, reports.attribute, self._settings.apdex_ms)

    @cached_property
    def _expressions(self) -> tuple[Traffic, Lowered]:
        wanted = wanted_by(self._plan)
        return Traffic(self._settings, wanted), lowered(
            self._plan, attribute(wanted), self._settings.apdex_ms
        )

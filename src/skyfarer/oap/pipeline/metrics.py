"""From the decoded rows of a batch to what it adds to every metric: one job of Spark's.

rows --traffic--> what each span says of whom --lowering--> sums by entity and minute --folding-->
one row an entity and minute, with tables where a metric has one
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic import attribute, emitted, wanted_by
from skyfarer.oap.pipeline.folding import folded
from skyfarer.oap.pipeline.lowering import deltas


class Metrics:
    """All that is asked of a batch at once. Keeps nothing between batches but the last aliases."""

    def __init__(self, plan: Plan, settings: AnalysisSettings) -> None:
        self._plan = plan
        self._settings = settings
        self._wanted = wanted_by(plan)
        self._attribute = attribute(self._wanted)

    def of(self, rows: DataFrame, aliases: pa.Table | None = None) -> dict[str, Deltas]:
        """By source. Blocks for one job of Spark's."""
        return folded(self.frame(rows, aliases).toArrow(), self._plan)

    def frame(self, rows: DataFrame, aliases: pa.Table | None = None) -> DataFrame:
        """The query of that job. `aliases` as `core.storage.Reader.aliases` has them."""
        known = None
        if aliases is not None and aliases.num_rows:
            known = F.broadcast(rows.sparkSession.createDataFrame(aliases))
        found = emitted(rows, self._settings, self._wanted, known)
        return deltas(found, self._plan, self._attribute, self._settings.apdex_ms)

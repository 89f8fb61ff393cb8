"""From the decoded rows of a batch to what it adds to every metric: one job of Spark's for all that
traces say, and one for all that agents report of themselves. What traces say of generative AI is
another one, of those batches that have any of it.

rows --traffic--> what each span says of whom --lowering--> sums by entity and minute --folding-->
one row an entity and minute, with tables where a metric has one; reports go the same way
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from skyfarer.oap.core.entities import GEN_AI, MESHED, REPORTED, TRACED
from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.analysis import reports
from skyfarer.oap.pipeline.analysis.reports import Reported
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic import (
    GenAITraffic,
    Traffic,
    attribute,
    gen_ai_attribute,
    wanted_by,
)
from skyfarer.oap.pipeline.folding import folded, together
from skyfarer.oap.pipeline.lowering import Lowered, lowered
from skyfarer.oap.pipeline.once import AnalysedOnce
from skyfarer.oap.pipeline.sources.reports import sources_of
from skyfarer.oap.pipeline.sources.reports.tls import apart


class Metrics:
    """All that is asked of a batch at once, of one session: nothing is kept between batches but
    the queries, which are made at the first one; the one of traces again whenever the aliases are
    another table. One thread at a time."""

    def __init__(self, plan: Plan, settings: AnalysisSettings) -> None:
        self._whole, self._plan = plan, plan.of(TRACED)
        self._of_sources: dict[frozenset[str], tuple[Plan, Lowered, AnalysedOnce]] = {}
        self._settings = settings
        self._aliases: pa.Table | None = None
        self._query: AnalysedOnce | None = None

    @property
    def disabled(self) -> frozenset[str]:
        """The streams that nothing is to be stored of."""
        return self._whole.disabled

    def of(self, rows: DataFrame, aliases: pa.Table | None = None) -> dict[str, Deltas]:
        """What traces say, by source. Blocks for one job of Spark's."""
        _, made = self._expressions
        return folded(made.named(self.frame(rows, aliases).toArrow()), self._plan)

    def of_gen_ai(self, rows: DataFrame) -> dict[str, Deltas]:
        """The same of generative AI."""
        plan, made, query = self._gen_ai
        return folded(made.named(query.of(rows).toArrow()), plan)

    def of_reports(self, rows: DataFrame, kinds: Iterable[int]) -> dict[str, Deltas]:
        """The same of what agents report, of messages of these kinds: to plan a metric takes time,
        whether or not there is anything for it. What a mesh says beside traces, of the same
        sources, is a job of its own."""
        said = sources_of(kinds)
        parts = [said.intersection(some) for some in (REPORTED, MESHED)]
        return reduce(together, (self._of(rows, sources) for sources in parts if sources), {})

    def _of(self, rows: DataFrame, sources: frozenset[str]) -> dict[str, Deltas]:
        plan, made, query = self._reports(sources)
        told = folded(made.named(query.of(rows).toArrow()), plan)
        return {source: apart(deltas) for source, deltas in told.items()}

    def frame(self, rows: DataFrame, aliases: pa.Table | None = None) -> DataFrame:
        """The query of that job. `aliases` as `core.storage.Reader.aliases` has them."""
        if self._query is None or aliases is not self._aliases:
            told = aliases is not None and aliases.num_rows
            known = rows.sparkSession.createDataFrame(aliases) if told else None
            traffic, lowered_plan = self._expressions
            self._query = AnalysedOnce(lambda some: lowered_plan.of(traffic.of(some, known)))
            self._aliases = aliases
        return self._query.of(rows)

    def query_of(self, source: str, rows: DataFrame) -> tuple[DataFrame, Mapping[str, str]]:
        """The query that the metrics of a source are made by, and the column of its result that
        has each accumulator. Nothing runs here."""
        if source in TRACED:
            return self.frame(rows), self._expressions[1].places
        of_reports = source not in GEN_AI
        _, made, query = self._reports(frozenset({source})) if of_reports else self._gen_ai
        return query.of(rows), made.places

    @cached_property
    def _gen_ai(self) -> tuple[Plan, Lowered, AnalysedOnce]:
        plan, traffic = self._whole.of(GEN_AI), GenAITraffic(self._settings)
        made = lowered(plan, gen_ai_attribute, self._settings.apdex_ms)
        return plan, made, AnalysedOnce(lambda rows: made.of(traffic.of(rows)))

    @cached_property
    def _reported(self) -> Reported:
        return Reported(self._settings.naming)

    def _reports(self, sources: frozenset[str]) -> tuple[Plan, Lowered, AnalysedOnce]:
        if sources not in self._of_sources:
            plan = self._whole.of(sources)
            made = lowered(plan, reports.attribute, self._settings.apdex_ms)
            query = AnalysedOnce(lambda rows: made.of(self._reported.of(rows, sources)))
            self._of_sources[sources] = plan, made, query
        return self._of_sources[sources]

    @cached_property
    def _expressions(self) -> tuple[Traffic, Lowered]:
        wanted = wanted_by(self._plan)
        return Traffic(self._settings, wanted), lowered(
            self._plan, attribute(wanted), self._settings.apdex_ms
        )

"""The same analysis by the pipeline: decoding, Spark, and the folding of what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from golden.registered import Registry
from golden.seen import Of, Seen, entity_name, merged
from skyfarer.base.units import MIB
from skyfarer.oap.core.entities import GEN_AI, TRACED
from skyfarer.oap.core.gen_ai import GenAIModels
from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.oal.values import Columns
from skyfarer.oap.pipeline.analysis.segments import one_form
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings, NamingSettings
from skyfarer.oap.pipeline.analysis.traffic import (
    GenAITraffic,
    attribute,
    emitted,
    gen_ai_attribute,
    wanted_by,
)
from skyfarer.oap.pipeline.folding import folded
from skyfarer.oap.pipeline.lowering import Lowered, lowered
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.plain_analysis import Row, Rules
from skyfarer.wire.messages import SegmentObject
from skyfarer.wire.rpc import Kind

COLUMNS = ["reason", "segment"]
"""Of the decoded rows: what traffic is made from."""


@dataclass(frozen=True)
class Batch:
    """With `v2` its segments are sent as agents of that protocol send them."""

    segments: Sequence[SegmentObject]
    rules: Rules
    v2: bool = False


def seen_by_spark(
    spark: SparkSession,
    directory: Path,
    batches: Iterable[Batch],
    plan: Plan,
    apdex: Mapping[str, int],
) -> Seen:
    wanted, calls, models = wanted_by(plan), [], []
    for number, batch in enumerate(batches):
        decoded = _decoded(spark, directory / str(number), batch)
        settings = _settings(batch.rules)
        calls.append(emitted(decoded, settings, wanted, _aliases(spark, batch.rules)))
        models.append(GenAITraffic(settings).of(decoded))
    of_calls = lowered(plan.of(TRACED), attribute(wanted), apdex)
    of_models = lowered(plan.of(GEN_AI), gen_ai_attribute, apdex)
    (rows, columns), (more, others) = (
        _seen(calls, of_calls, plan.of(TRACED)),
        _seen(models, of_models, plan.of(GEN_AI)),
    )
    return Seen([*rows, *more], {**columns, **others})


def _seen(
    emitted: Iterable[DataFrame], made: Lowered, plan: Plan
) -> tuple[list[Row], dict[Of, Columns]]:
    """Rows are made once, and kept for the columns that are counted from them."""
    every = reduce(DataFrame.unionByName, emitted).persist()
    found = [*map(_row, every.toArrow().to_pylist())]
    counted = folded(made.named(made.of(every).toArrow()), plan)
    every.unpersist()
    return found, _columns(counted, plan)


def naming(rules: Rules) -> NamingSettings:
    return NamingSettings(
        rules.service_chars_max, rules.instance_chars_max, rules.endpoint_chars_max
    )


def _settings(rules: Rules) -> AnalysisSettings:
    return AnalysisSettings(
        naming=naming(rules),
        gateways=rules.gateways,
        no_upstream_components=tuple(sorted(rules.no_upstream_components)),
        trace_analysis=rules.trace_analysis,
        gen_ai=GenAIModels(rules.providers, rules.prices),
    )


def _decoded(spark: SparkSession, directory: Path, batch: Batch) -> DataFrame:
    writer = Writer(QueueSettings(directory, MIB, 8 * MIB, record_bytes_max=MIB // 4))
    writer.start()
    registry, kind = Registry(), Kind.V2_SEGMENT if batch.v2 else Kind.SEGMENT
    sent = [registry.upstream(one) if batch.v2 else one for one in batch.segments]
    writer.append(kind, [one.SerializeToString() for one in sent])
    end = writer.writing
    writer.stop(1)
    options = {"directory": directory, "start": 0, "end": end, "splits": 1}
    source = spark.read.format(QueueSource.name())
    found = source.options(**{key: str(value) for key, value in options.items()}).load()
    return one_form(found, {kind}, registry).select(*COLUMNS)


def _aliases(spark: SparkSession, rules: Rules) -> DataFrame | None:
    names = ("address", "alias_service", "alias_instance")
    known = [dict(zip(names, (a, *alias), strict=True)) for a, alias in rules.aliases.items()]
    return spark.createDataFrame(pa.Table.from_pylist(known)) if known else None


def _row(found: dict[str, Any]) -> Row:
    """Without what only this way of analysing has."""
    return {name: value for name, value in found.items() if not name.startswith("tag_")}


def _columns(counted: Mapping[str, Deltas], plan: Plan) -> dict[Of, Columns]:
    """By the names of a script: an entity that has several components is one."""
    parts: dict[Of, list[Columns]] = {}
    with_metrics = {source.source for source in plan.sources}
    for source in counted.keys() & with_metrics:
        for row in counted[source].rows.to_pylist():
            of = Of(source, entity_name({**row, "source": source}), row["minute"])
            parts.setdefault(of, []).append(_values(row, counted[source].merges))
    return {of: merged(plan, of.source, its) for of, its in parts.items()}


def _values(row: Mapping[str, Any], names: Iterable[str]) -> Columns:
    found = {name: row[name] for name in names if row[name] is not None}
    return {k: dict(v) if isinstance(v, list) else v for k, v in found.items()}

"""A metric explained: its columns, what they add up, who shares them, the shape of the query."""

from __future__ import annotations

from collections.abc import Iterator

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError
from skyfarer.oap.core.entities import ENTITY_COLUMNS, GEN_AI, REPORTED
from skyfarer.oap.oal.plan import Accumulator, Metric, Plan, SourcePlan
from skyfarer.oap.oal.tables import TABLES, cell_of, key_columns, key_of

SHARERS_SHOWN_MAX = 4
OF_THE_KEY = (
    "                 (what a whole group has in common is asked of it once, not of its rows)"
)


def explained(plan: Plan, name: str) -> str:
    """Some lines of text. Raises as `found` does."""
    return "\n".join(_lines(*found(plan, name)))


def found(plan: Plan, name: str) -> tuple[SourcePlan, Metric]:
    """A name that the plan has not is a ConfigError with the nearest one."""
    metrics = {
        metric.name: (source, metric) for source in plan.sources for metric in source.metrics
    }
    if name in plan.disabled:
        raise ConfigError(f"the metric '{name}' is disabled")
    if name not in metrics:
        raise ConfigError(f"there is no metric '{name}'{nearest(name, metrics)}")
    return metrics[name]


def _lines(source: SourcePlan, metric: Metric) -> Iterator[str]:
    yield f"{metric.name} = {metric.call} of {source.source}"
    accumulators = {a.column: a for a in source.accumulators}
    used = [(part, accumulators[column]) for part, column in metric.columns]
    yield ""
    yield "stored, per entity and minute, hour or day:"
    for part, accumulator in used:
        yield f"  {accumulator.column}"
        yield f"    {part}: {accumulator}"
        yield f"    {_shared(source, metric, accumulator)}"
    yield ""
    yield from _spark(source, [accumulator for _, accumulator in used])


def _shared(source: SourcePlan, metric: Metric, accumulator: Accumulator) -> str:
    others = [
        other.name
        for other in source.metrics
        if other != metric and accumulator.column in dict(other.columns).values()
    ]
    if not others:
        return "for this metric alone"
    shown, more = others[:SHARERS_SHOWN_MAX], len(others) - SHARERS_SHOWN_MAX
    return f"shared with {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")


def _spark(source: SourcePlan, used: list[Accumulator]) -> Iterator[str]:
    """The shape that `pipeline.lowering` gives to the query of all metrics together."""
    tables = [accumulator for accumulator in used if accumulator.operation in TABLES]
    names = key_columns(source)
    cells = dict.fromkeys(cell_of(a) if a in tables else a for a in used)
    asked = "that agents report" if source.source in REPORTED else "of traces"
    whose = "of generative AI" if source.source in GEN_AI else asked
    yield f"Spark, in the one aggregation of all metrics {whose}:"
    yield f"  rows of {source.source}"
    for key in dict.fromkeys(map(key_of, tables)):
        yield f"  Project        {names[key]} = {key}"
    yield f"  HashAggregate  by source, minute, {', '.join(ENTITY_COLUMNS[:4])}, …" + "".join(
        f", {names[key]}" for key in dict.fromkeys(map(key_of, tables))
    )
    yield "  Exchange       by the same"
    yield "  HashAggregate  the parts of each group together, which then has"
    for cell in cells:
        yield f"                   {cell.column} = {cell}"
    if any(cell.where for cell in cells):
        yield OF_THE_KEY
    for table in tables:
        yield f"  folded         {table.column} = {names[key_of(table)]} → {cell_of(table).column}"

"""What is kept of a segment or a log beside its bytes: whether it has failed, and the tags to find
it by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.traces import TAG_CHARS_MAX
from skyfarer.oap.pipeline.analysis.slow import SlowSettings

ENTRY: Final = 0
TAGS_MAX: Final = 1_000
"""Of one segment or log, the first ones."""

Strategy: TypeAlias = Literal["FROM_SPAN_STATUS", "FROM_ENTRY_SPAN", "FROM_FIRST_SPAN"]


@dataclass(frozen=True)
class KeptSettings:
    """`failed_by`: the spans that make a segment fail: any, entries, or the one numbered 0."""

    failed_by: Strategy = "FROM_SPAN_STATUS"
    searchable_tags: tuple[str, ...] = ()
    searchable_log_tags: tuple[str, ...] = ()
    slow: SlowSettings = field(default_factory=SlowSettings)


def failed(spans: Column, strategy: Strategy) -> Column:
    if strategy == "FROM_ENTRY_SPAN":
        return F.exists(spans, lambda s: s["isError"] & (s["spanType"] == ENTRY))
    if strategy == "FROM_FIRST_SPAN":
        return F.exists(spans, lambda s: s["isError"] & (s["spanId"] == 0))
    return F.array_contains(spans["isError"], True)


def found_by(tags: Column, keys: tuple[str, ...]) -> Column:
    """`key=value` of those with these keys, each once, in their order; null where tags are."""
    if not keys:
        return F.when(tags.isNotNull(), F.array().cast("array<string>"))

    def wanted(tag: Column) -> Column:
        length = F.length(tag["key"]) + 1 + F.length(tag["value"])
        return tag["key"].isin(*keys) & (length <= TAG_CHARS_MAX)

    pairs = F.transform(
        F.filter(tags, wanted), lambda tag: F.concat(tag["key"], F.lit("="), tag["value"])
    )
    return F.slice(F.array_distinct(pairs), 1, TAGS_MAX)

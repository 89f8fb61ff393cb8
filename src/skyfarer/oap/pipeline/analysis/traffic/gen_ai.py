"""Calls of generative AI: what their spans say of the provider, a service, and of the model, an
instance of it.

Most batches have none. So these rows are a query of their own, asked of a batch that has such a
span, and neither the rows nor the groups of all other spans are any wider for them.

    source, minute, ENTITY_COLUMNS             as in every emitted row
    latency, status
    input_tokens, output_tokens, cost, first_token

Of a tag that comes twice the first holds, as in the original; of all other tags the last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.entities import ENTITY_COLUMNS, GEN_AI, Entity
from skyfarer.oap.core.gen_ai import GenAIModels
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.oal.plan import Field
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic.attributes import layer_or_id
from skyfarer.oap.pipeline.analysis.traffic.tags import nearest, whole
from skyfarer.oap.pipeline.analysis.traffic.texts import Names, named, nonblank
from skyfarer.wire.messages import SpanLayer, SpanType

UNKNOWN: Final = "unknown"
"""The provider of a model that nobody names and no prefix finds."""
PROVIDER: Final = "gen_ai.provider.name"
MODEL: Final = "gen_ai.response.model"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token"
_ATTRIBUTES: Final = {
    "latency": "latency",
    "status": "status",
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalEstimatedCost": "cost",
    "timeToFirstToken": "first_token",
}
_NAMES: Final = {Entity.SERVICE: "service", Entity.INSTANCE: "instance"}
_OF_MODELS: Final = [source for source, of in GEN_AI.items() if of is Entity.INSTANCE]
_COST_MIN, _COST_MAX = -(2.0**63), 2.0**63 - 1024
"""What is a double and 64 bits hold: to make a number of what they do not, Spark fails."""
T = TypeVar("T", str, tuple[float, float])


class GenAITraffic:
    """Needs a session, and is of that session: its expressions are made once, for all batches."""

    def __init__(self, settings: AnalysisSettings) -> None:
        span, names, known = F.col("span"), Names(settings.naming), settings.gen_ai
        self._sound = F.col("reason").isNull() & F.col("segment").isNotNull()
        self._each = F.explode("segment.spans").alias("span")
        self._asked = (span["spanLayer"] == SpanLayer.GenAI) & span["spanType"].isin(
            SpanType.Entry, SpanType.Exit, SpanType.Local
        )
        self._said = _said(span)
        found = F.coalesce("provider", _longest(F.col("model"), known.providers, "string"))
        self._found = {
            "provider": F.coalesce(found, F.lit(UNKNOWN)),
            "cost": _cost(known),
        }
        self._source = F.explode(F.array(*map(F.lit, GEN_AI))).alias("source")
        of_model = F.col("source").isin(_OF_MODELS)
        entity = {
            **dict.fromkeys(ENTITY_COLUMNS, F.lit("")),
            **dict.fromkeys(("from_layer", "component"), F.lit(0)),
            "service": names.service(F.col("provider")),
            "layer": F.lit(int(Layer.VIRTUAL_GENAI)),
            "instance": F.when(of_model, names.instance(F.col("model"))).otherwise(""),
        }
        self._columns = (*map(F.col, ("source", "minute", *_ATTRIBUTES.values())), *named(entity))

    def of(self, rows: DataFrame) -> DataFrame:
        """A row of the provider and one of the model for each span that names a model. Nothing runs
        yet."""
        spans = rows.where(self._sound).select(self._each).where(self._asked)
        calls = spans.select(*self._said).where(F.col("model").isNotNull())
        return calls.withColumns(self._found).select("*", self._source).select(*self._columns)


def attribute(source: str, field: Field) -> Column | None:
    """The value of a field in an emitted row of that source, before `Field.cast`; None for what no
    span says."""
    if field.path == "name":
        return F.col(_NAMES[GEN_AI[source]])
    return F.col(_ATTRIBUTES[field.path]) if field.path in _ATTRIBUTES else layer_or_id(field)


def _said(span: Column) -> tuple[Column, ...]:
    def first(key: str) -> Column:
        return F.get(span["tags"]["value"], F.array_position(span["tags"]["key"], key) - 1)

    def number(key: str, type_: str) -> Column:
        return F.coalesce(whole(first(key), type_).cast("long"), F.lit(0))

    said = {
        "model": nonblank(first(MODEL)),
        "provider": nonblank(first(PROVIDER)),
        "minute": F.floor(span["startTime"] / MINUTE_MS),
        "latency": nearest(span["endTime"] - span["startTime"]),
        "status": ~span["isError"],
        "input_tokens": number(INPUT_TOKENS, "long"),
        "output_tokens": number(OUTPUT_TOKENS, "long"),
        "first_token": number(FIRST_TOKEN, "int"),
    }
    return named(said)


def _cost(known: GenAIModels) -> Column:
    """In millionths of what the prices are in, as they are of a million tokens; 0 without them."""
    prices = _longest(F.col("model"), known.prices, "array<double>")
    cost = F.col("input_tokens") * prices[0] + F.col("output_tokens") * prices[1]
    told = F.coalesce(cost, F.lit(0.0)) + 0.5
    return F.floor(F.least(F.greatest(told, F.lit(_COST_MIN)), F.lit(_COST_MAX)))


def _longest(text: Column, table: Mapping[str, T], type_: str) -> Column:
    """The value of the longest prefix of the text; null where the table has none of it."""
    known = F.from_json(F.lit(json.dumps(table)), f"map<string,{type_}>")
    lengths = sorted({len(prefix) for prefix in table}, reverse=True)
    found = (F.try_element_at(known, F.substring(text, 1, length)) for length in lengths)
    return F.coalesce(*found, F.lit(None).cast(type_))

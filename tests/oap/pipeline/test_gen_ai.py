"""Generative AI through the whole pipeline: asked of the batches that have any, and stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from oap.pipeline.bench import BUCKET, NOON, Bench
from oap.pipeline.test_otlp import attributes as attributes_of
from oap.pipeline.test_otlp import export, span
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import GEN_AI
from skyfarer.oap.core.gen_ai import GenAIModels
from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.oal.plan import Field, Plan, SourcePlan
from skyfarer.oap.oal.sources import SOURCES
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings, NamingSettings
from skyfarer.oap.pipeline.analysis.traffic import gen_ai_attribute
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import KeyStringValuePair, SegmentObject, SpanObject
from skyfarer.wire.messages import otlp_trace as otlp
from skyfarer.wire.rpc import Kind

PLAN = plan_of([text for text in shipped() if text.file in ("core.oal", "virtual-gen-ai.oal")])
SETTINGS = AnalysisSettings(
    NamingSettings(10, 10, 12),
    gen_ai=GenAIModels({"sage": "plato"}, {"sage": (2, 3), "sage-dear": (1e9, 0)}),
)
PLATO = ids.service_id("plato", normal=False)


class Asked(Metrics):
    """Counts how often generative AI was asked for."""

    def __init__(self, plan: Plan, settings: AnalysisSettings) -> None:
        super().__init__(plan, settings)
        self.times = 0

    def of_gen_ai(self, rows: DataFrame) -> dict[str, Deltas]:
        self.times += 1
        return super().of_gen_ai(rows)


@pytest.fixture(scope="module")
def asked(spark: SparkSession) -> Asked:
    return Asked(PLAN, SETTINGS)


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession, asked: Asked) -> Iterator[Bench]:
    bench, asked.times = Bench(tmp_path, spark, SETTINGS, PLAN, asked), 0
    bench.start(tmp_path / "skyfarer.duckdb")
    yield bench
    bench.stop()


def chat(identifier: str, **tags: str) -> SegmentObject:
    """Its tags without what their names begin with."""
    told = {"response.model": "sage-1", **{key.replace("__", "."): v for key, v in tags.items()}}
    pairs = [KeyStringValuePair(key=f"gen_ai.{key}", value=value) for key, value in told.items()]
    one = SpanObject(spanType="Exit", spanLayer="GenAI", tags=pairs)
    one.startTime, one.endTime = NOON, NOON + 10
    return SegmentObject(traceSegmentId=identifier, service="shop", spans=[one])


def stored(bench: Bench, source: str, entity: str) -> dict[str, Any]:
    """By the names of the source's metrics, what they add up."""
    (plan,) = (one for one in PLAN.sources if one.source == source)
    columns = {metric.name: _sum_of(plan, metric.name) for metric in plan.metrics}
    rows = bench.storage.series(source, entity, [*{*columns.values()}], BUCKET, BUCKET)
    return {name: rows[BUCKET].get(column) for name, column in columns.items()} if rows else {}


def _sum_of(plan: SourcePlan, name: str) -> str:
    (metric,) = (one for one in plan.metrics if one.name == name)
    return metric.columns[0][1]


def test_a_provider_is_a_service_and_a_model_an_instance_of_it(bench: Bench) -> None:
    bench.append(chat("a"), chat("b", provider__name="aristotle"))
    bench.apply()
    services = bench.storage.services("VIRTUAL_GENAI")
    assert {(one.name, one.normal) for one in services} == {("plato", False), ("aristotle", False)}
    (model,) = bench.storage.instances(PLATO, BUCKET, BUCKET)
    assert model.name == "sage-1"


def test_what_it_cost_is_rounded_and_ends_where_64_bits_do(bench: Bench) -> None:
    tokens = {"usage__input_tokens": "5", "usage__output_tokens": "7"}
    bench.append(chat("a", **tokens), chat("b", **tokens))
    dear = {"response__model": "sage-dear", "usage__input_tokens": str(10**18)}
    bench.append(chat("c", **dear))
    bench.apply()
    found = stored(bench, "GenAIModelAccess", ids.instance_id(PLATO, "sage-1"))
    assert found["gen_ai_model_total_estimated_cost"] == 2 * (5 * 2 + 7 * 3)
    assert found["gen_ai_model_input_tokens_sum"] == 10
    found = stored(bench, "GenAIModelAccess", ids.instance_id(PLATO, "sage-dear"))
    assert found["gen_ai_model_total_estimated_cost"] == 2**63 - 1024


def test_a_batch_without_any_is_not_asked(bench: Bench, asked: Asked) -> None:
    bench.append(segment("shop", "shop-1", "/pay", NOON, 10))
    bench.apply()
    assert asked.times == 0
    bench.append(segment("shop", "shop-1", "/pay", NOON, 10), chat("a"))
    bench.apply()
    assert asked.times == 1


def test_a_call_that_comes_again_counts_once(bench: Bench, asked: Asked) -> None:
    bench.append(chat("a"), chat("a"))
    bench.apply()
    bench.append(chat("a"))
    bench.apply()
    assert stored(bench, "GenAIProviderAccess", PLATO)["gen_ai_provider_cpm"] == 1
    assert asked.times == 1


def test_a_span_of_opentelemetry_is_one_by_its_attributes(bench: Bench) -> None:
    told = attributes_of(
        {
            "http.request.method": "POST",
            "rpc.system": "aws-api",
            "server.address": "ai",
            "gen_ai.response.model": "sage-1",
            "gen_ai.provider.name": "plato",
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 0,
            "gen_ai.server.time_to_first_token": 4,
        }
    )
    asks = span(1, kind=otlp.Span.SPAN_KIND_CLIENT, attributes=told)
    bench.keep(Kind.OTLP_TRACES, export(asks, service_name="shop"))
    bench.apply()
    found = stored(bench, "GenAIModelAccess", ids.instance_id(PLATO, "sage-1"))
    assert (found["gen_ai_model_call_cpm"], found["gen_ai_model_ttft_avg"]) == (1, 4)
    assert found["gen_ai_model_total_estimated_cost"] == 10
    assert {one.name for one in bench.storage.services("VIRTUAL_GENAI")} == {"plato"}


def test_without_its_metrics_the_provider_and_the_model_are_known_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, spark)
    bench.start(tmp_path / "skyfarer.duckdb")
    bench.append(chat("a", provider__name="plato"))
    bench.apply()
    assert [one.id for one in bench.storage.services("VIRTUAL_GENAI")] == [PLATO]
    assert [one.name for one in bench.storage.instances(PLATO, BUCKET, BUCKET)] == ["sage-1"]
    bench.stop()


def test_every_attribute_of_its_sources_is_said(spark: SparkSession) -> None:
    for source in GEN_AI:
        for path, of in SOURCES[source].attributes.items():
            assert gen_ai_attribute(source, Field(path, of.type)) is not None

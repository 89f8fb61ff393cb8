"""The plan on Spark gives what the interpreter gives, in one aggregation and no Python."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from oap.pipeline.emitted_rows import SCHEMA, Emitted, attribute, oal_row, random_row
from skyfarer.oap.core.entities import ADDRESS_ALIAS, ENTITY_COLUMNS, TRACED
from skyfarer.oap.core.storage import Deltas, Merge
from skyfarer.oap.oal.compiler import Text, plan_of, shipped
from skyfarer.oap.oal.explanation import explained
from skyfarer.oap.oal.functions import FUNCTIONS
from skyfarer.oap.oal.interpreter import accumulate
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.folding import folded
from skyfarer.oap.pipeline.lowering import lowered

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics_plan.txt"
EVERYTHING = """
every_double = from(Service.latency).doubleAvg();
every_avg = from(Endpoint.latency).filter(status == true).avg();
every_max = from(Endpoint.latency).filter(latency < 0).max();
every_min = from(Endpoint.latency).filter(latency in [9, 10, 99]).min();
every_increase = from(Endpoint.latency).increase();
every_max_double = from((int)Service.tag["x"]).maxDouble();
every_min_double = from(MQAccess.transmissionLatency).minDouble();
every_sum = from((str->int)Service.tag["x"]).sum();
every_sum_per_minute = from(Endpoint.latency).filter(status == true).sumPerMin();
every_rate = from(Service.*).rate(httpResponseStatusCode == 404, rpcStatusCode != "OK");
every_percentile = from((long)Endpoint.tag["x"]).filter(tags not contain "k:v").percentile(7);
every_histogram = from(Endpoint.latency).filter(tags contain "k:v").histogram(100, 3);
every_wide = from(Endpoint.latency).percentile2(1000);
every_label_count = from(Endpoint.*).labelCount(rpcStatusCode);
every_label_average = from(Endpoint.*).labelAvg(tag["x"], latency, 40);
every_other_label = from(Endpoint.*).filter(status == true).labelAvg(rpcStatusCode, latency);
every_label_increase = from(Endpoint.latency).labelIncrease(rpcStatusCode, "x");
every_label_total = from(Endpoint.latency).filter(status == true).labelTotal(rpcStatusCode, "x");
every_label_sum = from(Endpoint.latency).labelSum(rpcStatusCode, "x");
every_label_sum_per_minute = from(Endpoint.latency).labelSumPerMin(tag["x"], "x", 40);
every_label_max = from(Endpoint.latency).filter(status == true).labelMax(tag["x"], "x");
every_label_min = from(Endpoint.latency).labelMin(rpcStatusCode, "x, y");
every_sum_histogram = from(Endpoint.latency).sumHistogram(rpcStatusCode);
every_sum_ranks = from(Endpoint.latency).filter(status == true).sumHistogramPercentile(tag["x"]);
every_average_histogram = from(Endpoint.latency).avgHistogram(tag["x"], 40);
every_average_ranks = from(Endpoint.latency).avgHistogramPercentile(tag["x"], 40);
every_number = from(Service.*).filter((int)tag["x"] <= 30).filter((int)tag["x"] != 7).count();
every_null = from(Service.*).filter(type == null).filter(rpcStatusCode != null).count();
every_in = from(Service.*).filter(rpcStatusCode in ["OK", ""]).filter(latency >= 10).cpm();
every_service = from(Service.*).filter(name like "a%").count();
every_endpoint = from(Endpoint.*).filter(name like "%a%").count();
every_endpoint_start = from(Endpoint.*).filter(name like "a%").count();
every_endpoint_end = from(Endpoint.*).filter(name like "%/").filter(latency > 100).count();
every_apdex = from(Endpoint.latency).apdex(serviceName, status);
every_list = from(Endpoint.*).filter(tags == null).filter(status != true).count();
"""
PLAN = plan_of([*shipped(), Text("everything.oal", EVERYTHING)]).of(TRACED)
THRESHOLDS_MS = {"a": 100, "ü": 100, "default": 300}
ROWS = 2_500
ALIAS = dict.fromkeys(SCHEMA.names) | {"source": ADDRESS_ALIAS, "minute": 1, "service": "a"}
HUGE = {"service": "huge", "type": "MQ", "tag_0": str(2**63 - 1)}


def rows_of(seed: int) -> list[Emitted]:
    random = Random(seed)
    return [random_row(random) for _ in range(ROWS)]


def huge(row: Emitted) -> Emitted:
    return row | {"source": "Service", "minute": 2, "status": True, "latency": 5} | HUGE


@pytest.fixture(scope="module")
def rows() -> list[Emitted]:
    return rows_of(20_26)


@pytest.fixture(scope="module")
def found(spark: SparkSession, rows: list[Emitted]) -> dict[str, Deltas]:
    """All that these tests look at, in one job."""
    emitted = [*rows, ALIAS, ALIAS, huge(rows[0]), huge(rows[0])]
    frame = spark.createDataFrame(pa.Table.from_pylist(emitted, schema=SCHEMA))
    return told(frame, PLAN, THRESHOLDS_MS)


def told(
    frame: DataFrame, plan: Plan, threshold_ms: dict[str, int] | None = None
) -> dict[str, Deltas]:
    made = lowered(plan, attribute, threshold_ms)
    return folded(made.named(made.of(frame).toArrow()), plan)


def by_entity(given: Deltas) -> dict[tuple[object, ...], dict[str, object]]:
    keys = (*ENTITY_COLUMNS, "minute")
    told: dict[tuple[object, ...], dict[str, object]] = {}
    for row in given.rows.to_pylist(maps_as_pydicts="strict"):
        columns = {name: row[name] for name in given.merges if row[name] is not None}
        assert told.setdefault(tuple(row[key] for key in keys), columns) is columns
    return told


def test_spark_gives_what_the_interpreter_gives(
    rows: list[Emitted], found: dict[str, Deltas]
) -> None:
    groups: dict[str, dict[tuple[object, ...], list[Emitted]]] = defaultdict(dict)
    for row in rows:
        entity = (*(row[name] for name in ENTITY_COLUMNS), row["minute"])
        groups[str(row["source"])].setdefault(entity, []).append(oal_row(row))
    plans = {source.source: source for source in PLAN.sources}
    for name, entities in groups.items():
        expected = {
            entity: accumulate(
                plans[name], members, lambda name: 100 if name in ("a", "ü") else 300
            )
            for entity, members in entities.items()
        }
        given = {k: v for k, v in by_entity(found[name]).items() if k[0] != "huge"}
        assert given == expected, name
    assert {*groups, ADDRESS_ALIAS} == {*found}


def test_every_function_and_every_kind_of_merge_is_among_them(found: dict[str, Deltas]) -> None:
    used = {metric.function for source in PLAN.sources for metric in source.metrics}
    assert {*FUNCTIONS} == used
    assert {how for one in found.values() for how in one.merges.values()} == {*Merge}


def test_a_sum_beyond_64_bits_is_null_and_stops_nothing(found: dict[str, Deltas]) -> None:
    (told,) = (row for entity, row in by_entity(found["Service"]).items() if entity[0] == "huge")
    assert told["count"] == 2
    assert not [name for name in told if name.startswith("sum_long_tag_transmission")]


def test_rows_without_metrics_come_through_once(found: dict[str, Deltas]) -> None:
    alias = found[ADDRESS_ALIAS]
    assert alias.merges == {}
    (row,) = alias.rows.to_pylist()
    assert (row["service"], row["minute"]) == ("a", 1)


def test_a_plan_without_metrics_still_tells_what_exists(
    spark: SparkSession, rows: list[Emitted]
) -> None:
    empty = plan_of([])
    frame = spark.createDataFrame(pa.Table.from_pylist(rows[:20] * 2, schema=SCHEMA))
    found = told(frame, empty)
    entities = {(r["source"], *(r[c] for c in ENTITY_COLUMNS), r["minute"]) for r in rows[:20]}
    assert sum(one.rows.num_rows for one in found.values()) == len(entities)


def test_an_explanation_shows_the_keys_and_aggregates_that_the_query_has(
    spark: SparkSession,
) -> None:
    plan = plan_of(shipped()).of(TRACED)
    made = lowered(plan, attribute)
    frame = spark.createDataFrame(pa.Table.from_pylist([ALIAS], schema=SCHEMA))
    keys = [name for name in made.of(frame).columns if name not in {*made.places.values()}]
    shown = set()
    for source in plan.sources:
        for metric in source.metrics:
            grouped, aggregates = drawn(explained(plan, metric.name))
            assert grouped[:2] == ["source", "minute"] and {*grouped} <= {*keys}, metric.name
            assert aggregates and {*aggregates} <= {*made.places}, metric.name
            shown |= {*grouped, *aggregates}
    assert shown >= {*made.places}
    assert "bucket_0" in shown


def drawn(text: str) -> tuple[list[str], list[str]]:
    """The keys and the aggregates of the picture."""
    lines = text.split("Spark, ")[1].splitlines()
    (by,) = (line for line in lines if line.startswith("  HashAggregate  by "))
    keys = [name for name in by.removeprefix("  HashAggregate  by ").split(", ") if name != "…"]
    return keys, [line.split(" = ")[0].strip() for line in lines if line.startswith(" " * 19)]


def test_the_physical_plan_is_one_exchange_between_two_generated_aggregations(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the shipped metrics. A plan that changed on purpose is written anew from the message."""
    # Persisted, so that the keys are not reckoned while the plan is made.
    frame = spark.createDataFrame(pa.Table.from_pylist([ALIAS], schema=SCHEMA)).persist()
    lowered(plan_of(shipped()).of(TRACED), attribute).of(frame).explain(mode="formatted")
    frame.unpersist()
    shown = normalised(capsys.readouterr().out)
    assert not re.search(r"Python|ArrowEval|ObjectHash|SortAggregate", shown)
    assert shown == GOLDEN.read_text("utf-8"), shown


def test_a_hundred_metrics_more_leave_code_generation_on(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    many = "".join(f"m{n} = from(Service.latency).filter(latency > {n}).max();" for n in range(100))
    frame = spark.createDataFrame(pa.Table.from_pylist([ALIAS], schema=SCHEMA))
    lowered(plan_of([Text("many.oal", many)]), attribute).of(frame).explain(mode="formatted")
    assert capsys.readouterr().out.count("* HashAggregate") == 2


LEFT_OUT = ("Input", "Aggregate Attributes", "Arguments: [", "Output [22]")


def normalised(shown: str) -> str:
    """Without the numbers Spark gives to whatever it meets, and an expression a line."""
    plain = re.sub(r"#\d+L?|, \[plan_id=\d+\]", "", shown)
    kept = [line for line in plain.splitlines() if not line.startswith(LEFT_OUT)]
    item = r", (?=(partial_)?(try_)?(sum|count)\(|_grouping|CASE )"
    return "\n".join(re.sub(item, ",\n    ", line) for line in kept).strip() + "\n"

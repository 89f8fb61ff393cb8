"""The golden scripts of meters, on the plain analysis and on Spark."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from golden.meters.scripts import HERE, Script, Seen, all_scripts, differences, script
from golden.scripts import ScriptError
from oap.pipeline.bench import NOON, Bench
from oap.pipeline.reported import Row, meaning
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.oal.interpreter import accumulate
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.wire.rpc import Kind

SCRIPTS = all_scripts(NOON)
SOURCES = {"InstanceMeter", "InstanceHistogram", "ServiceMeter"}
PLAN = plan_of([*shipped(), *(one.oal for one in SCRIPTS)]).of(SOURCES)
each_script = pytest.mark.parametrize("one", SCRIPTS, ids=lambda one: one.name)


def entity(row: Any) -> str:
    return " / ".join(filter(None, (row["service"], row["instance"])))


def plain(*scripts: Script) -> Seen:
    groups: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for one in scripts:
        for message in one.messages:
            for row in meaning(Kind.METER_COLLECTION, message):
                groups[row.source, entity(row._asdict()), row.time // 60_000].append(row)
    plans = {one.source: one for one in PLAN.sources}
    return {
        key: accumulate(plans[key[0]], [row.attributes for row in rows])
        for key, rows in groups.items()
    }


@each_script
def test_plain_analysis_comes_to_what_the_script_of_meters_expects(one: Script) -> None:
    assert differences(one, plain(one), PLAN) == []


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    directory: Path = tmp_path_factory.mktemp("meters")
    bench = Bench(directory, spark)
    bench.start(directory / "skyfarer.duckdb")
    messages = [message for one in SCRIPTS for message in one.messages]
    bench.keep(Kind.METER_COLLECTION, *messages)
    rows = bench.batch(0, len(messages))
    deltas = Metrics(PLAN, AnalysisSettings()).of_reports(rows, {Kind.METER_COLLECTION})
    bench.stop()
    return {
        (source, entity(row), row["minute"]): {
            column: row[column] for column in one.merges if row[column] is not None
        }
        for source, one in deltas.items()
        for row in one.rows.to_pylist(maps_as_pydicts="strict")
    }


@each_script
def test_spark_comes_to_what_the_script_of_meters_expects(one: Script, by_spark: Seen) -> None:
    assert differences(one, by_spark, PLAN) == []


def test_spark_and_the_plain_analysis_agree_on_every_meter(by_spark: Seen) -> None:
    assert by_spark == plain(*SCRIPTS)


def test_every_metric_of_meters_is_expected_by_a_script() -> None:
    expected = {name for one in SCRIPTS for name in one.expect}
    assert {metric.name for one in PLAN.sources for metric in one.metrics} - expected == set()


def test_a_difference_and_a_mistake_say_where_they_are() -> None:
    text = (HERE / "README.md").read_text().split("```yaml\n")[1].split("```")[0]
    one = script("mine.yaml", text, NOON)
    assert differences(one, plain(one), PLAN) == []
    other = script("mine.yaml", text.replace("shop-1: 4}", "shop-1: 5}"), NOON)
    (said,) = differences(other, plain(other), PLAN)
    assert said.endswith("g0 of 'shop / shop-1': expected 5, seen 4")
    with pytest.raises(ScriptError, match="load\\[0\\] has no 'meter'; did you mean 'meters'"):
        script("mine.yaml", text.replace("meters: {", "meter: {"), NOON)

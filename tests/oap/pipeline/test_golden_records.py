"""The golden scripts that say what is stored of traces, on the plain analysis and on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from golden.records import expects_records, record_differences, unlike
from golden.scripts import FIRST_DAY, Script, ScriptError, all_scripts, script
from golden.stored import records_in, settings_of
from oap.pipeline.bench import Bench
from skyfarer.oap.core.expiry import Retention
from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.testing.plain_analysis import Rules
from skyfarer.testing.plain_analysis.keeping import Keeping
from skyfarer.testing.plain_analysis.records import Records, plain_records

SCRIPTS = [one for one in all_scripts() if expects_records(one)]
ALWAYS = Retention(400, 400)
"""Days: scripts are of any time of the year."""
FEW = plan_of([Text("few.oal", "calls = from(Service.*).count();")])
SHOWN_MAX = 5
each_script = pytest.mark.parametrize("one", SCRIPTS, ids=lambda one: one.name)


def alike() -> list[list[Script]]:
    """Those with the same settings, which can be analysed at once."""
    groups: list[list[Script]] = []
    for one in SCRIPTS:
        same = next((group for group in groups if group[0].keeping == one.keeping), None)
        if same is None:
            groups.append([one])
        else:
            same.append(one)
    return groups


def plain(scripts: Sequence[Script]) -> Records:
    segments = [segment for one in scripts for segment in one.segments]
    return plain_records(segments, Rules(), scripts[0].keeping)


@each_script
def test_plain_analysis_keeps_the_records_that_the_script_expects(one: Script) -> None:
    assert "\n".join(record_differences(one, plain([one]))) == ""


@pytest.fixture(scope="module")
def by_spark(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[list[Script], Records]]:
    """Through the queue, the sink and the storage."""
    metrics = Metrics(FEW, settings_of(Rules(), Keeping(), ALWAYS))
    return [
        (group, stored(group, spark, tmp_path_factory.mktemp("records"), metrics))
        for group in alike()
    ]


def stored(
    scripts: Sequence[Script], spark: SparkSession, directory: Path, metrics: Metrics
) -> Records:
    bench = Bench(
        directory, spark, settings_of(Rules(), scripts[0].keeping, ALWAYS), metrics=metrics
    )
    bench.start(directory / "skyfarer.duckdb")
    bench.append(*(segment for one in scripts for segment in one.segments))
    bench.apply()
    found = records_in(bench)
    assert bench.parked() == []
    bench.stop()
    return found


@each_script
def test_spark_stores_the_records_that_the_script_expects(
    one: Script, by_spark: list[tuple[list[Script], Records]]
) -> None:
    found = next(records for group, records in by_spark if one in group)
    assert "\n".join(record_differences(one, found)) == ""


def test_spark_and_the_plain_analysis_agree_on_every_record(
    by_spark: list[tuple[list[Script], Records]],
) -> None:
    told = [said for group, records in by_spark for said in unlike(plain(group), records)]
    assert f"{len(told)} differ\n" + "\n".join(told[:SHOWN_MAX]) == "0 differ\n"


GOOD = """
about: one call
load: [{id: one, segment: shop / 1, spans: [{entry: /a, took: 12ms, tags: {http.method: GET}}]}]
expect:
"""
WRONG = [
    ("{segments: []}", "segments: expected [], stored [('one',)]"),
    ("{segments: [{id: one, latency: 13}]}", "segments one: expected {'id': 'one', 'latency': 13}"),
    ("{tags: []}", "tags: expected [], stored ['http.method=GET']"),
    ("{slow: [{what: DATABASE, id: one-0}]}", "slow: expected [('DATABASE', 'one-0')], stored []"),
]


@pytest.mark.parametrize(("expect", "sentence"), WRONG)
def test_a_record_that_differs_is_told(expect: str, sentence: str) -> None:
    one = script("mine.yaml", GOOD.replace("expect:", f"expect: {expect}"), FIRST_DAY)
    (said,) = record_differences(one, plain([one]))
    assert said.startswith(f"mine.yaml: {sentence}")


MISTAKES = [
    ("expect: {segments: [{id: one, lag: 1}]}", "segments[0] has no 'lag'; "),
    ("expect: {slow: [{id: one-0}]}", "mine.yaml: slow[0] needs 'what'"),
    ("settings: {segmentStatus: ANY}\nexpect: {}", "'ANY' is none of FROM_SPAN_STATUS"),
    ("settings: {sampling: {rat: 1}}\nexpect: {}", "settings.sampling has no 'rat'; it has rate"),
    ("settings: {slow: {cache: {}}}\nexpect: {}", "settings.slow has no 'cache'; it has database"),
]


@pytest.mark.parametrize(("text", "sentence"), MISTAKES)
def test_a_mistake_about_records_says_where_it_is(text: str, sentence: str) -> None:
    with pytest.raises(ScriptError) as caught:
        one = script("mine.yaml", GOOD.replace("expect:", text), FIRST_DAY)
        record_differences(one, plain([one]))
    assert sentence in str(caught.value)

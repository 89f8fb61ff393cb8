"""The golden scripts, on the plain analysis and on Spark; and both on random traffic."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from golden.agreement import disagreements
from golden.checks import differences
from golden.on_spark import Batch, seen_by_spark
from golden.scripts import FIRST_DAY, HERE, Script, ScriptError, all_scripts, script
from golden.seen import Seen, counted
from golden.together import Together
from golden.traffic import Traffic, random_traffic
from skyfarer.oap.core.entities import (
    ADDRESS_ALIAS,
    ENDPOINT_META,
    GEN_AI,
    SERVICE_META,
    TRACED,
)
from skyfarer.oap.oal.functions import FUNCTIONS
from skyfarer.testing.plain_analysis import Rules, plain_rows
from skyfarer.testing.random_segments import ALIASES, GATEWAYS, PRICES, PROVIDERS

ALL = Together(all_scripts())
GROUPS = 100
SHOWN_MAX = 5
each_script = pytest.mark.parametrize("one", ALL.scripts, ids=lambda one: one.name)


@each_script
def test_plain_analysis_comes_to_what_the_script_expects(one: Script) -> None:
    assert "\n".join(differences(one, ALL.plain, ALL.plan)) == ""


def rules(trace_analysis: bool) -> Rules:
    """Of the scripts and of random traffic, whose addresses are others."""
    own = ALL.rules(trace_analysis)
    return replace(
        own,
        gateways=own.gateways | GATEWAYS,
        aliases={**own.aliases, **ALIASES},
        providers={**own.providers, **PROVIDERS},
        prices={**own.prices, **PRICES},
    )


@pytest.fixture(scope="module")
def traffic() -> Traffic:
    return random_traffic(GROUPS)


@pytest.fixture(scope="module")
def by_spark(
    spark: SparkSession, traffic: Traffic, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    """Everything at once: what belongs together has a time of its own."""
    batches = []
    for on, v2 in ((True, False), (False, False), (True, True)):
        scripts = [one for one in ALL.scripts if (one.trace_analysis, one.v2) == (on, v2)]
        told = [segment for script in scripts for segment in script.segments]
        random = traffic.segments if on and not v2 else []
        batches.append(Batch([*told, *random], rules(on), v2))
    return seen_by_spark(spark, tmp_path_factory.mktemp("golden"), batches, ALL.plan, ALL.apdex)


@each_script
def test_spark_comes_to_what_the_script_expects(one: Script, by_spark: Seen) -> None:
    assert "\n".join(differences(one, by_spark, ALL.plan)) == ""


def test_spark_and_the_plain_analysis_agree_on_every_row_and_column(
    by_spark: Seen, traffic: Traffic
) -> None:
    random = counted(plain_rows(traffic.segments, rules(True)), ALL.plan, ALL.apdex)
    plain = Seen([*random.rows, *ALL.plain.rows], {**random.columns, **ALL.plain.columns})
    told = [
        f"{sentence}\nof {[*traffic.of(minute)] or 'a script'}"
        for minute, sentence in disagreements(plain, by_spark)
    ]
    assert f"{len(told)} differ\n" + "\n".join(told[:SHOWN_MAX]) == "0 differ\n"


def test_random_traffic_has_every_kind_of_row(traffic: Traffic) -> None:
    kinds = Counter(row["source"] for row in plain_rows(traffic.segments, rules(True)))
    assert {*TRACED, *GEN_AI, SERVICE_META, ENDPOINT_META, ADDRESS_ALIAS} == set(kinds)


FUNCTIONS_OF_5_2 = [
    "longAvg",
    "doubleAvg",
    "sum",
    "count",
    "cpm",
    "percent",
    "rate",
    "max",
    "min",
    "maxDouble",
    "minDouble",
    "apdex",
    "percentile",
    "percentile2",
    "histogram",
    "labelCount",
    "labelAvg",
    "avg",
    "sumPerMin",
    "sumHistogram",
    "sumHistogramPercentile",
    "avgHistogram",
    "avgHistogramPercentile",
]
"""Those of the original, of its meters too. Ours beside them are in the table of functions."""


def test_every_function_of_the_metrics_language_is_expected_somewhere() -> None:
    metrics = {metric.name: metric.function for s in ALL.plan.sources for metric in s.metrics}
    expected = {
        metrics[name]
        for one in ALL.scripts
        for part, names in one.expect.items()
        if part.startswith(("minute", "hour", "day"))
        for name in names
    }
    assert {*FUNCTIONS, *FUNCTIONS_OF_5_2} - expected == set()


GOOD = """
about: one call
load: [{segment: shop / shop-1, spans: [{entry: /a, took: 12ms}]}]
expect:
"""
WRONG = [
    ("{count: {Service: 2}}", "count: expected {'Service': 2}, seen {'Service': 1, 'Serv"),
    ("{rows: [{Service: {latency: 13}}]}", "rows[0]: expected 1 of Service {'latency': 13}, seen"),
    ("{relations: {server: []}}", "relations.server: expected [], seen ['User -> shop']"),
    ("{ids: {Service: [x]}}", "ids.Service: expected ['x'], seen ['c2hvcA==.1']"),
    (
        "{minute: {service_cpm: {shop: 2}}}",
        "minute: service_cpm of 'shop': expected 2, seen 1",
    ),
    ("{hour: {service_cpm: {shop: 1}}}", "hour: service_cpm of 'shop': expected 1, seen 0"),
    ("{minute 1: {service_cpm: {shop: 1}}}", "service_cpm of 'shop': expected 1, seen None"),
]


@pytest.mark.parametrize(("expect", "sentence"), WRONG)
def test_a_difference_says_which_script_which_expectation_and_what_was_seen(
    expect: str, sentence: str
) -> None:
    one = script("mine.yaml", GOOD.replace("expect:", f"expect: {expect}"), FIRST_DAY)
    (said,) = differences(one, Together([one]).plain, ALL.plan)
    assert said.startswith("mine.yaml: ")
    assert sentence in said


MISTAKES = [
    ("load: []", "mine.yaml: the script needs 'about'"),
    ("about: x\nload: {}\nexpect: {}", "mine.yaml: load must be a list, not {}"),
    ("about: x\nlaod: []", "mine.yaml: the script has no 'laod'; did you mean 'load'?"),
    (GOOD.replace("took", "tok"), "mine.yaml: load[0].spans[0] has no 'tok'; it has entry, exit"),
    (GOOD.replace("12ms", "12"), "mine.yaml: load[0].spans[0].took: '12' needs a unit: 12ms"),
    (GOOD.replace("entry: /a, ", ""), "load[0].spans[0] needs one of entry, exit and local"),
    (GOOD.replace("/a,", "/a, layer: Web,"), "load[0].spans[0].layer: 'Web' is none of Unknown"),
    (GOOD.replace("expect:", "expect: {minutes: {}}"), "expect has no 'minutes'; did you mean"),
    (GOOD.replace("expect:", "expect: {}"), "mine.yaml: expect needs one of minute, count"),
    (
        GOOD.replace("expect:", "expect: {relations: {sever: []}}"),
        "mine.yaml: expect.relations has no 'sever'; did you mean 'server'?",
    ),
    (
        GOOD.replace("expect:", "expect: {ids: {Serviec: []}}"),
        "mine.yaml: expect.ids has no 'Serviec'; did you mean 'Service'?",
    ),
    (
        GOOD.replace("expect:", "expect: {minute: {service_cmp: {}}}"),
        "mine.yaml: minute has no 'service_cmp'; did you mean 'service_cpm'?",
    ),
    (
        GOOD.replace("expect:", "expect: {rows: [{Service: {lag: 1}}]}"),
        "mine.yaml: rows[0]: a row has no column 'lag'",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), MISTAKES)
def test_a_mistake_in_a_script_says_where_it_is(text: str, sentence: str) -> None:
    with pytest.raises(ScriptError) as caught:
        one = script("mine.yaml", text, FIRST_DAY)
        differences(one, Together([one]).plain, ALL.plan)
    assert sentence in str(caught.value)


def test_the_script_that_the_readme_shows_holds() -> None:
    text = (HERE / "README.md").read_text().split("```yaml\n")[1].split("```")[0]
    one = script("README.md", text, FIRST_DAY)
    assert differences(one, Together([one]).plain, ALL.plan) == []


def test_two_scripts_cannot_give_one_address_two_meanings() -> None:
    texts = [f"settings: {{aliases: {{a: s / {n}}}}}{GOOD}  {{}}" for n in (1, 2)]
    scripts = [script(f"{n}.yaml", text, FIRST_DAY + n) for n, text in enumerate(texts)]
    with pytest.raises(ScriptError, match=r"1\.yaml: another script has the alias 'a' too"):
        _ = Together(scripts).plain

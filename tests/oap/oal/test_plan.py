"""Text → plan, as golden scripts."""

from __future__ import annotations

from itertools import permutations
from textwrap import dedent

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.oap.oal.compiler import Text, compile_texts, plan_of


def printed(text: str) -> str:
    return str(plan_of([Text("test.oal", text)]))


SCRIPTS = {
    "metrics of one source share what they count": (
        """
        a = from(Service.latency).longAvg();
        b = from(Service.*).percent(status == true);
        c = from(Service.*).cpm().decorator("ServiceDecorator");
        """,
        """
        Service
          sum_latency: sum(latency)
          count: count()
          count_where_status_true_74564e47: count() where status == true
          a = longAvg() of summation=sum_latency, count=count
          b = percent() of total=count, match=count_where_status_true_74564e47
          c = cpm() of total=count decorated by ServiceDecorator
        """,
    ),
    "conditions in another order are the same conditions": (
        """
        a = from(Service.*).filter(latency > 5).filter(name != null).count();
        b = from(Service.*).filter(name != null).filter(latency > 5).filter(latency > 5).cpm();
        """,
        """
        Service
          COLUMN: count() where latency > 5 and name != null
          a = count() of value=COLUMN
          b = cpm() of total=COLUMN
        """,
    ),
    "a text that is no number is no item": (
        """
        a = from((str->long)Service.tag["x.y"]).longAvg();
        """,
        """
        Service
          COLUMN: sum((long)tag["x.y"]) where (long)tag["x.y"] != null
          COLUMN: count() where (long)tag["x.y"] != null
          a = longAvg() of summation=COLUMN, count=COLUMN
        """,
    ),
    "every operator is kept as data": (
        """
        a = from(Service.*).filter(name like "x%").filter(latency in [1, 2])
            .filter(tags contain "k=v").filter(tags not contain "w")
            .filter(type in [RequestType.MQ, RequestType.gRPC]).count();
        """,
        """
        Service
          COLUMN: count() where latency in [1, 2] and name like "x%" and tags contain "k=v" and\
 tags not contain "w" and type in [MQ, gRPC]
          a = count() of value=COLUMN
        """,
    ),
    "functions with tables": (
        """
        a = from(Endpoint.latency).percentile2(10);
        b = from(Endpoint.latency).histogram(100, 20);
        c = from(BrowserAppResourcePerf.*).labelAvg(name, size);
        d = from(BrowserAppResourcePerf.*).labelCount(name, 50);
        """,
        """
        Endpoint
          buckets_latency_10: buckets(latency, 10)
          buckets_latency_100_20: buckets(latency, 100, 20)
          a = percentile2(10) of dataset=buckets_latency_10
          b = histogram(100, 20) of dataset=buckets_latency_100_20
        BrowserAppResourcePerf
          label_sums_name_size_50: label_sums(name, size, 50)
          label_counts_name_50: label_counts(name, 50)
          c = labelAvg() of summation=label_sums_name_size_50, count=label_counts_name_50
          d = labelCount(50) of dataset=label_counts_name_50
        """,
    ),
    "functions by the labels of a series": (
        """
        a = from(ServiceMeter.value).labelIncrease(series, "pipe, status");
        b = from(ServiceMeter.value).labelTotal(series, "pipe", 20);
        """,
        """
        ServiceMeter
          label_max_series_value_1000: label_max(series, value, 1000)
          label_min_series_value_1000: label_min(series, value, 1000)
          label_sums_series_value_20: label_sums(series, value, 20)
          label_counts_series_20: label_counts(series, 20)
          a = labelIncrease(pipe, status) of most=label_max_series_value_1000,\
 least=label_min_series_value_1000
          b = labelTotal(pipe, 20) of summation=label_sums_series_value_20,\
 count=label_counts_series_20
        """,
    ),
    "apdex and rate": (
        """
        a = from(Service.latency).apdex(name, status);
        b = from(BrowserAppTraffic.*).rate(count > 1, count == 1);
        """,
        """
        Service
          count: count()
          satisfied_latency_name_status: satisfied(latency, name, status)
          tolerated_latency_name_status: tolerated(latency, name, status)
          a = apdex() of total_num=count, s_num=satisfied_latency_name_status,\
 t_num=tolerated_latency_name_status
        BrowserAppTraffic
          count: count()
          COLUMN: count() where count > 1
          COLUMN: count() where count == 1
          b = rate() of total=count, numerator=COLUMN, denominator=COLUMN
        """,
    ),
    "comments, one inside another, and no spaces at all": (
        """
        /* a = from( /* nested */ ; */ a=from(Service.*).count();// b = from(
        """,
        """
        Service
          count: count()
          a = count() of value=count
        """,
    ),
}


@pytest.mark.parametrize("title", SCRIPTS)
def test_script(title: str) -> None:
    text, expected = (dedent(part).strip() for part in SCRIPTS[title])
    plan = plan_of([Text("test.oal", text)])
    shown = str(plan)
    if "COLUMN" in expected:
        for source in plan.sources:
            for accumulator in source.accumulators:
                if accumulator.where:
                    shown = shown.replace(accumulator.column, "COLUMN")
    assert shown == expected


def test_a_column_is_named_after_its_meaning_whatever_stands_around_it() -> None:
    lines = (
        "a = from(Service.*).filter(latency > 5).count();",
        "b = from(Service.*).filter(latency >= 5).count();",
        "c = from(Service.*).filter(latency < 5).cpm();",
    )
    columns = {
        frozenset(
            (metric.name, metric.columns)
            for metric in compile_texts([Text("t", " ".join(order))]).metrics
        )
        for order in permutations(lines)
    }
    assert len(columns) == 1
    assert len({column for ((_, column),) in (c for _, c in next(iter(columns)))}) == 3


def test_a_disabled_metric_is_left_out_whichever_file_says_so() -> None:
    metrics = Text("a.oal", "a = from(Service.*).count(); b = from(Service.latency).sum();")
    off = Text("b.oal", "disable(b); disable(segment);")
    for texts in ([metrics, off], [off, metrics]):
        plan = plan_of(texts)
        assert str(plan) == "Service\n  count: count()\n  a = count() of value=count"
        assert plan.disabled == {"b", "segment"}


def test_a_shipped_metric_may_be_disabled_where_its_file_is_not_used() -> None:
    assert plan_of([Text("a.oal", "disable(service_apdex);")]).disabled == {"service_apdex"}


def test_an_empty_text_is_an_empty_plan() -> None:
    assert printed("// nothing\n") == ""


def test_a_text_with_mistakes_makes_no_plan_at_start() -> None:
    with pytest.raises(ConfigError, match=r"^x\.oal:2:5: .*\nx\.oal:3:11: "):
        plan_of([Text("x.oal", "\na = form(Service.*).count();\na =  from(Servise.*).count();")])

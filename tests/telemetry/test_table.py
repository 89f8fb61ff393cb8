from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Kind, Metric, Registry
from third_parties.prometheus import complaints

SOURCE = Path(__file__).parents[2] / "src" / "skyfarer"
# Names of the design document and of the original, which end in no _total.
DOCUMENTED_COUNTERS = {
    "gatherer_fetch_count",
    "gatherer_receive_count",
    "processor_reading_count",
    "queue_output_count",
    "sender_output_count",
    "sender_abandoned_count",
    "sender_retry_count",
}


def test_names_are_unique_and_well_formed() -> None:
    names = [metric.name for metric in table.ALL]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)


@pytest.mark.parametrize("metric", table.ALL, ids=lambda metric: metric.name)
def test_a_row_follows_the_rules_of_prometheus(metric: Metric) -> None:
    ends_as_counter = metric.name.endswith("_total") or metric.name in DOCUMENTED_COUNTERS

    assert (metric.kind is Kind.COUNTER) == ends_as_counter
    assert metric.help.endswith(".")
    assert len(set(metric.labels)) == len(metric.labels)
    assert not {"le", "quantile", "job", "instance"} & set(metric.labels)
    assert metric.series_max > 0


def test_promtool_has_nothing_to_say_about_any_row() -> None:
    registry = Registry(table.ALL)
    for metric in table.ALL:
        registry.set(metric, 1, **dict.fromkeys(metric.labels, "some"))
    shown = registry.render()

    assert shown.count("# TYPE") == len(table.ALL)
    assert complaints(shown) == []
    typed = shown.replace(" untyped\n", " gauge\n")
    assert "sender_retry_count" in "".join(complaints(typed)), "it would have said so"


@pytest.mark.parametrize(
    "name",
    [
        "gatherer_writing_offset",
        "gatherer_watermark_offset",
        "processor_reading_count",
        "sender_committed_offset",
        "sender_abandoned_count",
        "sender_retry_count",
    ],
)
def test_the_metrics_of_the_satellites_design_document_are_there(name: str) -> None:
    assert name in {metric.name for metric in table.SATELLITE}


def test_each_program_declares_its_own_rows_and_together_all() -> None:
    assert {*table.SATELLITE, *table.OAP} == set(table.ALL)
    assert "pipeline_batches_total" not in {metric.name for metric in table.SATELLITE}
    Registry(table.ALL).render()


def test_nobody_else_declares_a_metric() -> None:
    home = SOURCE / "telemetry"
    elsewhere = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.parent != home and "generated" not in path.parts and _declares(path)
    ]

    assert elsewhere == []


def _declares(path: Path) -> bool:
    """Whether the file calls the `Metric` it imports from telemetry."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "skyfarer.telemetry.metrics"
        and any(name.name == "Metric" for name in node.names)
        for node in ast.walk(tree)
    )
    return imported and any(
        isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Metric"
        for node in ast.walk(tree)
    )


def test_every_metric_of_the_table_is_set_somewhere() -> None:
    others = (path for path in SOURCE.rglob("*.py") if path != Path(table.__file__))
    text = "".join(path.read_text() for path in others)
    names = [name for name, value in vars(table).items() if isinstance(value, Metric)]
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []

"""`skyfarer oap top`: what it makes of the metrics."""

from __future__ import annotations

import pytest

from skyfarer.cli.main import main
from skyfarer.cli.oap_top import view
from skyfarer.cli.samples import Samples
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import free_port


def scrape(records: int, cpu_s: float, free_s: float = 120.0) -> Samples:
    """The names are those of the table, so that none is misspelt in the view."""
    registry = Registry()
    registry.set(table.QUEUE_ACCEPTED, records + 40)
    registry.set(table.QUEUE_QUEUED, 40)
    registry.set(table.PIPELINE_LAG_SECONDS, 1.25)
    registry.set(table.PIPELINE_RECORDS, records - 3, outcome="stored")
    registry.set(table.PIPELINE_RECORDS, 2, outcome="parked")
    registry.set(table.PIPELINE_RECORDS, 1, outcome="duplicate")
    registry.set(table.PIPELINE_RETRIED, 1)
    registry.set(table.QUEUE_REJECTED, 9, reason="full")
    registry.set(table.PIPELINE_ROWS, records - 3, what="segment")
    registry.set(table.PIPELINE_ROWS, 12, what="metrics")
    registry.set(table.QUEUE_DROPPED, 2, reason="undecodable")
    registry.set(table.QUEUE_DROPPED, 1, reason="duplicate")
    registry.set(table.PIPELINE_BATCHES, 7)
    registry.set(table.PIPELINE_RESTARTS, 0)
    registry.set(table.PIPELINE_BATCH_RECORDS, 55)
    registry.set(table.PIPELINE_BATCH_SECONDS, 0.432)
    registry.set(table.QUEUE_FREE_SECONDS, free_s, queue="ingest")
    registry.set(table.QUEUE_CAPACITY_SECONDS, free_s, queue="ingest")
    for process in ("oap", "oap-receiver"):
        registry.set(table.PROCESS_RESIDENT_BYTES, 50e6, process=process)
        registry.set(table.PROCESS_CPU_SECONDS, cpu_s / 2, process=process)
    return Samples(registry.render())


def test_it_shows_totals_rates_between_two_looks_and_where_analysis_stands() -> None:
    lines = view(scrape(1100, 9.0), scrape(100, 8.0), elapsed_s=2.0)
    assert [" ".join(line.split()) for line in lines] == [
        "lag 40 records, 1.2 s",
        "last batch 55 records in 0.43 s; 7 batches, 0 restarts",
        "the queue is full in 120 s of 120 s at this rate",
        "memory 100 MB, cpu 50.0 %",
        "",
        "total a second",
        "accepted 1140 500.0",
        "stored 1097 500.0",
        "duplicate 1 0.0",
        "parked 2 0.0",
        "retried 1 0.0",
        "refused 9 0.0",
        "rows out: metrics 12 0.0",
        "rows out: segment 1097 500.0",
        "dropped: duplicate 1 0.0",
        "dropped: undecodable 2 0.0",
    ]


def test_the_first_look_has_no_rates_and_an_idle_queue_lasts_for_ever() -> None:
    lines = view(scrape(100, 8.0, free_s=float("inf")), None, elapsed_s=0.0)
    assert "the queue lasts for ever at this rate" in lines
    assert [line.split()[-1] for line in lines[6:]] == ["-"] * 10


def test_it_says_when_there_is_no_oap(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("SW_TELEMETRY_PROMETHEUS_PORT", str(port))
    assert main(["oap", "top", "--once"]) == 1
    said = capsys.readouterr().err
    assert f"no OAP shows its metrics at http://127.0.0.1:{port}/metrics" in said

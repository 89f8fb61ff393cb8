"""What a node says of its own pipeline, through the HTTP door."""

from __future__ import annotations

import math

from skyfarer.telemetry import table
from skyfarer.telemetry.ledger import Ledger


def told(oap):
    answer = oap.http.get("/status/pipeline")
    assert answer.status_code == 200
    return answer.json()


def test_the_books_and_the_clock_of_the_node_are_in_it(oap):
    oap.reader.books = Ledger(12, 7, 2, {"expired": 3})
    found = told(oap)
    dropped = {"expired": 3}
    assert found["ledger"] == {
        "accepted": 12,
        "delivered": 7,
        "queued": 2,
        "dropped": dropped,
        "balanced": True,
    }
    assert found["time"] > 0


def test_figures_are_those_of_the_metrics_with_those_of_the_receiver_among_them(oap):
    oap.registry.set(table.PIPELINE_BATCH_SECONDS, 0.25)
    oap.registry.set(table.PIPELINE_BATCH_RECORDS, 1200)
    oap.registry.observe_with(table.PIPELINE_LAG_SECONDS, lambda: 1.5)
    oap.registry.inc(table.PIPELINE_ROWS, 30, what="segments")
    oap.registry.inc(table.PIPELINE_RECORDS, 40, outcome="stored")
    oap.registry.set(table.QUEUE_CAPACITY_SECONDS, 900.0, queue="ingest")
    oap.registry.set(table.OLDEST_DATA_AGE, 86_400, kept="record")
    child = type(oap.registry)()
    child.inc(table.RECEIVER_REFUSED, 2, rpc="/a", reason="too_large")
    child.inc(table.RECEIVER_REFUSED, 3, rpc="/b", reason="too_large")
    child.set(table.RECEIVER_CONNECTIONS, 5)
    oap.registry.merge(child.snapshot())
    found = told(oap)
    assert found["analysis"]["lag_s"] == 1.5
    assert found["analysis"]["last_batch_s"] == 0.25
    assert found["analysis"]["last_batch_records"] == 1200
    assert found["analysis"]["rows"] == {"segments": 30}
    assert found["analysis"]["records"] == {"stored": 40}
    assert found["queue"]["capacity_s"] == 900
    assert found["receiver"]["refused"] == {"too_large": 5}
    assert found["receiver"]["connections"] == 5
    assert found["ttl"]["oldest_age_s"] == {"record": 86_400}


def test_what_nobody_counted_and_what_has_no_end_are_null(oap):
    oap.registry.set(table.QUEUE_FREE_SECONDS, math.inf, queue="ingest")
    found = told(oap)
    assert found["queue"] == {"capacity_s": None, "free_s": None, "rejected": {}}
    assert found["analysis"]["lag_s"] is None
    assert found["storage"] == {"provider": None}


def test_books_that_cannot_be_read_are_a_503_that_says_so(oap):
    oap.reader.failure = RuntimeError("disk on fire")
    answer = oap.http.get("/status/pipeline")
    assert answer.status_code == 503
    assert answer.json() == {"errors": [{"message": "the pipeline cannot be read now"}]}
    assert oap.http.post("/status/pipeline").status_code == 405

"""A trace is sent by its services one after the other, and read back whole."""

from __future__ import annotations

from datetime import UTC, datetime

import grpc
import pytest

from skyfarer.testing.programs import Oap, ledger_since
from skyfarer.testing.traces import Exit, caller, segment

pytestmark = pytest.mark.e2e

NOON = int(datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)
TRACE = "a-trace-sent-and-read"


def test_a_trace_that_was_sent_in_parts_is_read_as_one_tree(oap: Oap) -> None:
    exits = [Exit("/stock", "stock:80", 5, 20)]
    front = segment("tq-front", "f-1", "GET:/", NOON, 90, trace_id=TRACE, exits=exits)
    stock = segment(
        "tq-stock",
        "s-1",
        "/stock",
        NOON + 6,
        9,
        trace_id=TRACE,
        callers=[caller(front, 1)],
        tags={"note": "ABCD"},
    )
    broken_text = stock.SerializeToString().replace(b"ABCD", b"\xc3\x28\xff\xff")
    before = oap.ledger()
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        for payload in (broken_text, front.SerializeToString()):
            collect(iter([payload]), timeout=120)
    added = ledger_since(before, oap.await_applied(before["accepted"] + 2))
    assert (added["delivered"], added["dropped"]) == (2, {})
    spans = oap.trace(TRACE)
    assert [(span["serviceCode"], span["endpointName"], span["type"]) for span in spans] == [
        ("tq-front", "GET:/", "Entry"),
        ("tq-front", "/stock", "Exit"),
        ("tq-stock", "/stock", "Entry"),
    ]
    assert spans[2]["tags"] == [{"key": "note", "value": "\ufffd(\ufffd\ufffd"}]

"""When Spark's JVM is gone the OAP must not pretend: it ends, says why, and loses nothing."""

from __future__ import annotations

import grpc
import psutil
import pytest

from skyfarer.testing.programs import Oap, eventually
from skyfarer.testing.traces import segment

pytestmark = pytest.mark.e2e


def send(oap: Oap, *names: str) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        segments = [segment("shop", "i", "/", 1_794_744_000_000, 5, segment_id=n) for n in names]
        collect(iter([one.SerializeToString() for one in segments]), timeout=30)


def test_a_dead_jvm_ends_the_oap_with_a_reason_and_the_next_start_goes_on(own_oap: Oap) -> None:
    oap = own_oap
    send(oap, "a", "b")
    oap.await_applied(2)
    (jvm,) = [p for p in psutil.Process(oap.pid).children() if "java" in p.name()]
    jvm.kill()
    send(oap, "c")
    eventually(oap.has_ended, 60, "the OAP ends by itself")
    assert oap.stop() == 1
    assert "Spark's JVM is gone" in oap.log.read_text()
    oap.start()
    ledger = oap.await_applied(3)
    assert (ledger["delivered"], ledger["dropped"]) == (3, {})
    assert oap.stop() == 0

"""The receiver as a module of the OAP: what it shows of its queue to the operator."""

from __future__ import annotations

import re
from pathlib import Path

import grpc

from skyfarer.oap.boot.providers.cluster import StandaloneProvider
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.providers.receivers import ReceiverProvider
from skyfarer.oap.boot.settings import CoreConfig, NoKeys, SharingServerConfig
from skyfarer.oap.core.modules import Modules
from skyfarer.testing.programs import eventually


def test_metrics_say_how_many_seconds_the_ingest_queue_lasts(tmp_path: Path) -> None:
    core = CoreProvider(CoreConfig(gRPCPort=0, dataDirectory=tmp_path))
    receiver = ReceiverProvider(SharingServerConfig())
    modules = Modules([StandaloneProvider(NoKeys()), core, receiver])
    modules.start()

    def seconds(name: str) -> float:
        found = re.search(rf'^{name}{{queue="ingest"}} (.+)$', core.node.registry.render(), re.M)
        assert found
        return float(found[1])

    try:
        assert seconds("queue_capacity_seconds") == seconds("queue_free_seconds") == float("inf")
        with grpc.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
            collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
            collect(iter([bytes(1024)] * 100), timeout=60)
        eventually(
            lambda: 0 < seconds("queue_free_seconds") < seconds("queue_capacity_seconds") < 1e9,
            30,
            "the next look has seen what was written",
        )
    finally:
        assert modules.stop(30) == []

"""The satellite's own metrics as the OAP gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from skyfarer.satellite.meters import collection
from skyfarer.satellite.sections import TelemetryConfig
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.messages import meter
from skyfarer.wire.rpc import Kind

# What the OAP's rules for satellites read.
NAMES = {
    "sw_stl_gatherer_receive_count",
    "sw_stl_queue_output_count",
    "sw_stl_sender_output_count",
    "sw_stl_pipeline_queue_total_capacity",
    "sw_stl_pipeline_queue_partition_size",
    "sw_stl_grpc_server_cpu_gauge",
    "sw_stl_grpc_server_connection_count",
}


def reports(upstream: Upstream) -> list[Any]:
    payloads = upstream.payloads(Kind.METER_COLLECTION)
    return [meter.MeterDataCollection.FromString(one) for one in payloads]


def test_every_value_becomes_a_meter_of_this_service_and_instance() -> None:
    registry = Registry()
    registry.inc(table.SENDER_RECORDS, 3, pipe="native")
    registry.set(table.QUEUE_QUEUED, 7)
    registry.set(table.SATELLITE_TASKS, float("nan"))
    telemetry = TelemetryConfig(service="sidecars", instance="pod-1")

    made = meter.MeterDataCollection.FromString(collection(registry.snapshot(), telemetry, 1234))

    by_name = {one.singleValue.name: one for one in made.meterData}
    assert set(by_name) == {"sw_stl_queue_queued_records", "sw_stl_sender_records_total"}
    records = by_name["sw_stl_sender_records_total"]
    assert records.singleValue.value == 3.0
    assert [(label.name, label.value) for label in records.singleValue.labels] == [
        ("pipe", "native")
    ]
    assert {(one.service, one.serviceInstance, one.timestamp) for one in made.meterData} == {
        ("sidecars", "pod-1", 1234)
    }


def test_a_satellite_that_shall_report_does_so_by_its_client(rig: Callable[..., Any]) -> None:
    environ = {
        "SATELLITE_TELEMETRY_EXPORT_TYPE": "prometheus,metrics_service",
        "SATELLITE_TELEMETRY_METRICS_SERVICE_INTERVAL": "1",
        "SATELLITE_TELEMETRY_SERVICE": "sidecars",
    }

    async def scenario() -> None:
        async with rig(**environ) as r:
            await r.collect([b"one", b"two"])
            await r.until(lambda: len(reports(r.upstream)) >= 2)
            last = reports(r.upstream)[-1].meterData
            assert {one.singleValue.name for one in last} >= NAMES
            received = [
                one.singleValue.value
                for one in last
                if one.singleValue.name == "sw_stl_gatherer_receive_count"
                and {label.value for label in one.singleValue.labels} == {"native", "all"}
            ]
            assert received == [2.0]
            assert {one.service for one in last} == {"sidecars"}
            # Its own reports are no records of a pipe.
            assert r.satellite.ledger().accepted == 2

    asyncio.run(scenario())


def test_a_report_that_fails_is_said_once_and_the_next_is_newer(
    rig: Callable[..., Any], caplog: Any
) -> None:
    environ = {
        "SATELLITE_TELEMETRY_EXPORT_TYPE": "metrics_service",
        "SATELLITE_TELEMETRY_METRICS_SERVICE_INTERVAL": "1",
    }

    async def scenario() -> None:
        async with rig(up=False, **environ) as r:
            assert r.satellite.telemetry.port == 0
            await r.until(lambda: "own metrics cannot be reported" in caplog.text)
            await r.upstream.start()
            await r.until(lambda: reports(r.upstream))

    asyncio.run(scenario())
    assert caplog.text.count("own metrics cannot be reported") == 1

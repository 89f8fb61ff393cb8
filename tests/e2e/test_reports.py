"""A JVM and a browser speak of themselves, and their charts are read as any client would."""

from __future__ import annotations

import time

import grpc
import httpx
import pytest

from e2e.reading import calls, duration
from skyfarer.testing.programs import Oap, ledger_since
from skyfarer.wire.messages import runtime

pytestmark = pytest.mark.e2e


def test_what_a_jvm_and_a_browser_report_is_in_their_charts(oap: Oap) -> None:
    now_ms = time.time_ns() // 1_000_000
    told = runtime.JVMMetricCollection(service="rp-shop", serviceInstance="rp-1")
    metric = told.metrics.add(time=now_ms)
    metric.cpu.usagePercent = 41.0
    metric.memory.add(isHeap=True, used=7_000, max=9_000)
    page = {"service": "rp-web", "serviceVersion": "v3", "pagePath": "/cart", "time": now_ms}
    before = oap.ledger()
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        collect = channel.unary_unary("/skywalking.v3.JVMMetricReportService/collect")
        collect(told.SerializeToString(), timeout=120)
    for path, more in (("perfData", {"fmpTime": 120}), ("errorLog", {"category": "js"})):
        url = f"http://127.0.0.1:{oap.rest_port}/browser/{path}"
        httpx.post(url, json=page | more, trust_env=False, timeout=60).raise_for_status()
    added = ledger_since(before, oap.await_applied(before["accepted"] + 3))
    assert (added["delivered"], added["dropped"]) == (3, {})
    instance = {"serviceInstanceName": "rp-1"}
    assert calls(oap, "instance_jvm_cpu", "rp-shop", **instance) == 41
    assert calls(oap, "instance_jvm_memory_heap", "rp-shop", **instance) == 7_000
    assert calls(oap, "browser_app_pv", "rp-web") == 1
    assert calls(oap, "browser_app_error_sum", "rp-web") == 1
    cart = {"endpointName": "/cart"}
    assert calls(oap, "browser_app_page_fmp_avg", "rp-web", **cart) == 120
    assert calls(oap, "browser_app_page_js_error_sum", "rp-web", **cart) == 1
    found = oap.graphql('{ listServices(layer: "BROWSER") { id name } }')["listServices"]
    (web,) = [one for one in found if one["name"] == "rp-web"]
    found = oap.graphql(
        """query ($id: ID!, $duration: Duration!) {
          listInstances(serviceId: $id, duration: $duration) { name } }""",
        id=web["id"],
        duration=duration(),
    )
    assert found["listInstances"] == [{"name": "v3"}]


def test_an_event_posted_in_two_parts_is_read_as_one(oap: Oap) -> None:
    now_ms = time.time_ns() // 1_000_000
    source = {"service": "ev-shop", "serviceInstance": "ev-1"}
    told = {"uuid": "ev", "source": source, "name": "Reboot", "layer": "GENERAL"}
    begun = {**told, "type": "Error", "startTime": now_ms - 5, "parameters": {"reason": "oom"}}
    ended = {**told, "type": "Error", "startTime": now_ms - 5, "endTime": now_ms}
    before = oap.ledger()
    for part in (begun, ended):
        url = f"http://127.0.0.1:{oap.rest_port}/v3/events"
        httpx.post(url, json=[part], trust_env=False, timeout=60).raise_for_status()
    oap.await_applied(before["accepted"] + 2)
    found = oap.graphql(
        """query ($condition: EventQueryCondition) { queryEvents(condition: $condition) {
          events { uuid name type source { service serviceInstance } parameters { key value }
            startTime endTime layer } } }""",
        condition={
            "source": {"service": "ev-shop"},
            "time": duration(),
            "paging": {"pageNum": 1, "pageSize": 9},
        },
    )["queryEvents"]["events"]
    assert found == [
        {
            **begun,
            "parameters": [{"key": "reason", "value": "oom"}],
            "endTime": now_ms,
        }
    ]

"""Prometheus looks at both programs and asks the bridge, by its own server and promtool."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from random import Random

import grpc
import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.testing.expected import Entity
from skyfarer.testing.programs import Oap, eventually
from skyfarer.testing.satellites import SatelliteProgram
from skyfarer.testing.traffic import DemoTraffic
from third_parties.prometheus import PrometheusServer, complaints, queried

pytestmark = pytest.mark.e2e

# Everything that shows metrics of its own: receivers, files, targets, filters, meters.
SATELLITE = """
data_directory: ${SKYFARER_SATELLITE_DATA_DIR}
telemetry:
  export_type: prometheus,metrics_service
  cluster: here
  service: pm-satellite
  instance: pm-1
  prometheus: {address: "127.0.0.1:0"}
  metrics_service: {client_name: grpc-client, interval: 2}
sharing:
  clients: [{plugin_name: grpc-client, server_addr: "${SATELLITE_GRPC_CLIENT}"}]
  servers: [{plugin_name: grpc-server, address: "${SATELLITE_GRPC_ADDRESS}"}]
pipes:
  - common_config: {pipe_name: native}
    gatherer:
      server_name: grpc-server
      receivers: [{plugin_name: grpc-native-receiver}]
    processor:
      filters: [{plugin_name: tag-editor, set: {region: north}}]
    sender: {client_name: grpc-client, flush_time: 20}
  - common_config: {pipe_name: files}
    gatherer:
      fetcher: {plugin_name: log-fetcher, paths: "LOGS/*.log", service: pm-logs, interval: 100ms}
    sender: {client_name: grpc-client, flush_time: 20}
  - common_config: {pipe_name: scraped}
    gatherer:
      fetcher: {plugin_name: prometheus-fetcher, targets: "TARGET", service: pm-oap,
                interval: 2s, timeout: 2s}
    sender: {client_name: grpc-client, flush_time: 20}
"""
MINUTES = 3
TRACES_A_MINUTE = 30
HOURS_AGO = 3
"""Other tests look at the demo's shop in the last hour."""
SCRAPES = 5
SCRAPED_WITHIN_S = 240.0


@pytest.fixture
def satellite(oap: Oap, tmp_path: Path) -> Iterator[SatelliteProgram]:
    (tmp_path / "logs").mkdir()
    text = SATELLITE.replace("LOGS", str(tmp_path / "logs")).replace("TARGET", telemetry(oap))
    (tmp_path / "satellite.yaml").write_text(text)
    upstream = f"127.0.0.1:{oap.grpc_port}"
    with SatelliteProgram(tmp_path, upstream, tmp_path / "satellite.yaml") as running:
        yield running
        assert running.stop() == 0


def telemetry(oap: Oap) -> str:
    return f"127.0.0.1:{oap.telemetry_port}"


def send(satellite: SatelliteProgram, place: Path) -> DemoTraffic:
    """Some minutes of the demo's traffic, and some lines of a file."""
    traffic = DemoTraffic(Random(5), SystemClock())
    first_ms = (time.time_ns() // 60_000_000_000 - HOURS_AGO * 60) * 60_000
    payloads = [
        segment.SerializeToString()
        for minute in range(MINUTES)
        for number in range(TRACES_A_MINUTE + 7 * minute)
        for segment in traffic.trace(first_ms + minute * 60_000 + number * 1_000)
    ]
    with grpc.insecure_channel(satellite.address) as channel:
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        collect(iter(payloads), timeout=60)
    (place / "logs" / "pm.log").write_text("one\ntwo\n")
    return traffic


def test_both_programs_are_scraped_without_a_warning_and_the_bridge_has_the_demos_rate(
    oap: Oap, satellite: SatelliteProgram, tmp_path: Path
) -> None:
    before = oap.ledger()
    traffic = send(satellite, tmp_path)
    eventually(lambda: satellite.metric("gatherer_fetch_count") > 2, 240, "lines and samples")
    eventually(lambda: not satellite.metric("queue_queued_records"), 240, "an empty queue")
    wanted = before["delivered"] + satellite.metric("queue_delivered_total")
    eventually(lambda: oap.ledger()["delivered"] >= wanted, 120, f"{wanted:.0f} records stored")
    see_the_rate(oap, traffic)
    see_the_scrapes(oap, satellite, tmp_path)
    see_no_complaints(oap, satellite)


def see_the_rate(oap: Oap, traffic: DemoTraffic) -> None:
    """Calls a minute of each service, as promtool gets them and as they were sent."""
    first, last = traffic.expected.minutes
    span = [f"--start={first * 60}", f"--end={last * 60}", "--step=60s"]
    for service in ("gateway", "order", "stock"):
        query = f'service_cpm{{service="{service}",layer="GENERAL"}}'
        said = queried(f"{oap.url}/prometheus", "range", *span, query)[1:]
        pairs = (re.fullmatch(r"(\d+) @\[(\d+)\]", line) for line in said)
        shown = {int(pair[2]) // 60: int(pair[1]) for pair in pairs if pair}
        sent = traffic.expected.series(Entity("service", service))
        assert shown == {minute: total.calls for minute, total in sent.items()}, said
        assert shown


def see_the_scrapes(oap: Oap, satellite: SatelliteProgram, place: Path) -> None:
    address = satellite.metrics_url.split("/")[2]
    prometheus = PrometheusServer(place, {"oap": telemetry(oap), "satellite": address})
    prometheus.start()
    try:
        eventually(
            lambda: min([0, *prometheus.value("sum_over_time(up[2m])").values()][-2:]) >= SCRAPES,
            SCRAPED_WITHIN_S,
            "both were scraped some times",
        )
        # A scrape that a busy machine has not answered within its second is followed by others.
        eventually(lambda: both_are_up(prometheus), SCRAPED_WITHIN_S, "both are up")
        eventually(lambda: books_agree(prometheus), SCRAPED_WITHIN_S, "the OAP has what was sent")
        assert prometheus.warnings() == []
    finally:
        prometheus.stop()


def both_are_up(prometheus: PrometheusServer) -> bool:
    seen = prometheus.targets()
    health = {job: (one["health"], one["lastError"]) for job, one in seen.items()}
    up = {"oap": ("up", ""), "satellite": ("up", "")}
    return health == up and prometheus.value("up") == {"oap": 1, "satellite": 1}


def books_agree(prometheus: PrometheusServer) -> bool:
    """The two are never scraped at the same moment."""
    accepted = prometheus.value("queue_accepted_total")
    return accepted["oap"] >= accepted["satellite"] > 0


def see_no_complaints(oap: Oap, satellite: SatelliteProgram) -> None:
    with urllib.request.urlopen(satellite.metrics_url, timeout=60) as response:
        of_satellite = response.read().decode()
    for shown in (of_satellite, oap.metrics()):
        assert shown.count("# TYPE") > 20
        assert complaints(shown) == []
    for name in ("gatherer_log_bytes_total", "gatherer_scrapes_total", "sender_output_count"):
        assert f"# TYPE {name} " in of_satellite

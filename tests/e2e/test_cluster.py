"""Whole OAPs that know each other, and one whose coordinator is lost while agents report to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from skyfarer.testing.programs import Oap, eventually, ledger_since
from skyfarer.testing.traces import segment
from third_parties.etcd import EtcdServer

pytestmark = pytest.mark.e2e

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
WAIT_S = 120.0
CALLS = 20


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path / "own")
    server.start()
    yield server
    server.kill()


def aggregator(directory: Path, etcd: EtcdServer, host: str) -> Oap:
    """Without Spark, and so without its half minute."""
    return Oap(
        directory,
        SW_CORE_ROLE="Aggregator",
        SW_CLUSTER="etcd",
        SW_CLUSTER_ETCD_ENDPOINTS=etcd.address,
        SW_CLUSTER_INTERNAL_COM_HOST=host,
        SW_CLUSTER_INTERNAL_COM_PORT="11800",
    )


def get(oap: Oap, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{oap.url}{path}", timeout=120) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def nodes(oap: Oap) -> list[str]:
    return [one["host"] for one in get(oap, "/status/cluster/nodes")["nodes"]]


def well(oap: Oap) -> bool:
    return get(oap, "/healthcheck") == {"score": 0, "details": ""}


def command(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skyfarer.cli", "oap", *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_aggregators_know_each_other_answer_queries_and_receive_nothing(
    tmp_path: Path, own_etcd: EtcdServer
) -> None:
    hosts = ("10.0.0.2", "10.0.0.10")
    first, second = (aggregator(tmp_path / host, own_etcd, host) for host in hosts)
    try:
        for one in (first, second):
            one.start()
            assert "an Aggregator, without receivers, queries at http" in one.ready_line
        for one in (first, second):
            eventually(lambda one=one: nodes(one) == ["10.0.0.10", "10.0.0.2"], WAIT_S, "known")
            eventually(lambda one=one: well(one), WAIT_S, "well")
        assert first.graphql("{ version }")["version"]
        with grpc.insecure_channel(f"127.0.0.1:{first.grpc_port}") as channel:
            with pytest.raises(grpc.RpcError) as refused:
                channel.stream_unary(COLLECT)(iter([b""]), timeout=60)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert command("nodes", "--url", first.url).stdout.splitlines() == [
            "node             self  keeps the ttl",
            "10.0.0.10:11800        yes",
            "10.0.0.2:11800   yes",
        ]
        listed = command("nodes", "--json", "--url", second.url).stdout.splitlines()
        assert [json.loads(line) for line in listed] == [
            {"node": f"{host}:11800", "host": host, "port": 11800, "self": own, "first": own}
            for host, own in (("10.0.0.10", True), ("10.0.0.2", False))
        ]
        assert command("settings", "list", "--data-dir", str(first.data)).returncode == 0
        parked = command("parked", "list", "--data-dir", str(first.data))
        assert parked.returncode == 1 and "parked.list" in parked.stderr, parked
        assert second.stop() == 0
        eventually(lambda: nodes(first) == ["10.0.0.2"], WAIT_S, "the other has left")
    finally:
        for one in (first, second):
            one.kill()


def test_a_coordinator_that_is_not_there_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    done = command(
        "start",
        SW_CLUSTER="zookeeper",
        SW_CLUSTER_ZK_HOST_PORT="127.0.0.1:1",
        SW_CLUSTER_ZK_MAX_RETRIES="0",
        SW_CORE_ROLE="Aggregator",
        SKYFARER_DATA_DIR=str(tmp_path),
        **{f"SW_{port}_PORT": "0" for port in ("CORE_REST", "TELEMETRY_PROMETHEUS")},
    )
    assert done.returncode == 1
    assert "cannot start: ZooKeeper at 127.0.0.1:1 cannot be reached" in done.stderr
    assert "SW_CLUSTER_ZK_HOST_PORT" in done.stderr


def test_an_address_that_is_everywhere_is_a_mistake_of_the_configuration(tmp_path: Path) -> None:
    done = command(
        "start",
        SW_CLUSTER="etcd",
        SW_CORE_GRPC_HOST="0.0.0.0",
        SKYFARER_DATA_DIR=str(tmp_path),
    )
    assert done.returncode == 2
    assert "this node cannot be known to others as 0.0.0.0:11800: set internalComHost" in (
        done.stderr
    )


def test_c03_agents_report_on_while_the_coordinator_is_lost_and_emptied(
    oap: Oap, etcd: EtcdServer
) -> None:
    """None of the calls may fail: whoever receives knows nothing of coordinators."""
    books, now_ms = oap.ledger(), int(time.time() * 1000)
    renewed = "cluster_registrations_renewed_total 0"
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        collect = channel.stream_unary(COLLECT)

        def report(turn: str) -> None:
            for number in range(CALLS):
                one = segment("member", "member-1", "/m", now_ms, 1, segment_id=f"{turn}{number}")
                collect(iter([one.SerializeToString()]), timeout=120)

        assert renewed in oap.metrics()
        report("before")
        etcd.kill()
        etcd.wipe()
        missed = "cluster_coordinator_reachable 0"
        eventually(lambda: missed in oap.metrics(), WAIT_S, "it is missed")
        report("without")
        etcd.start()
        eventually(lambda: renewed not in oap.metrics(), WAIT_S, "it is told anew")
        report("after")
    oap.await_applied(books["accepted"] + 3 * CALLS)
    gained = ledger_since(books, oap.ledger())
    assert gained == {"accepted": 3 * CALLS, "delivered": 3 * CALLS, "dropped": {}}
    eventually(lambda: nodes(oap) == ["127.0.0.1"], WAIT_S, "it knows itself")
    eventually(lambda: well(oap), WAIT_S, "well")

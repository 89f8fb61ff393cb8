"""The receiver as a module of the OAP: its ports, and what it shows of its queue."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest
import trustme

from skyfarer.base.errors import ConfigError
from skyfarer.base.units import MIB
from skyfarer.oap.boot.providers.cluster import StandaloneProvider
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.providers.receivers import ReceiverProvider
from skyfarer.oap.boot.settings import CoreConfig, NoKeys, SharingServerConfig
from skyfarer.oap.core.modules import Modules
from skyfarer.oap.receivers.access import AccessSettings
from skyfarer.oap.receivers.process import ReceiverSettings, queue_settings
from skyfarer.queue.reader import Reader
from skyfarer.testing.programs import eventually, free_port

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
HOST = "127.0.0.1"


@contextmanager
def started(
    core_config: CoreConfig, config: SharingServerConfig
) -> Iterator[tuple[CoreProvider, ReceiverProvider]]:
    core, receiver = CoreProvider(core_config), ReceiverProvider(config)
    modules = Modules([StandaloneProvider(NoKeys()), core, receiver])
    modules.start()
    try:
        yield core, receiver
    finally:
        assert modules.stop(30) == []


def collect(
    port: int, *payloads: bytes, token: str = "", authority: trustme.CA | None = None
) -> None:
    address = f"{HOST}:{port}"
    if authority is None:
        channel = grpc.insecure_channel(address)
    else:
        trusted = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
        channel = grpc.secure_channel(address, trusted)
    with channel:
        send = channel.stream_unary(COLLECT)
        send(iter(payloads), timeout=60, metadata=[("authentication", token)] if token else [])


def test_metrics_say_how_many_seconds_the_ingest_queue_lasts(tmp_path: Path) -> None:
    with started(CoreConfig(gRPCPort=0, dataDirectory=tmp_path), SharingServerConfig()) as (
        core,
        receiver,
    ):

        def seconds(name: str) -> float:
            text = core.node.registry.render()
            found = re.search(rf'^{name}{{queue="ingest"}} (.+)$', text, re.M)
            assert found
            return float(found[1])

        assert seconds("queue_capacity_seconds") == seconds("queue_free_seconds") == float("inf")
        collect(receiver.port, *[bytes(1024)] * 100)
        eventually(
            lambda: 0 < seconds("queue_free_seconds") < seconds("queue_capacity_seconds") < 1e9,
            30,
            "the next look has seen what was written",
        )


def test_what_is_no_message_is_refused_only_where_the_configuration_says_so(tmp_path: Path) -> None:
    for refuse in (False, True):
        core_config = CoreConfig(gRPCPort=0, dataDirectory=tmp_path)
        with started(core_config, SharingServerConfig(refuseMalformed=refuse)) as (_, receiver):
            if not refuse:
                collect(receiver.port, b"\xff")
                continue
            with pytest.raises(grpc.RpcError, match="message 1 of the call is no well-formed"):
                collect(receiver.port, b"\xff")


def test_with_ports_of_its_own_nobody_listens_for_agents_at_cores(tmp_path: Path) -> None:
    cores, grpc_port, rest_port = free_port(), free_port(), free_port()
    config = SharingServerConfig(gRPCPort=grpc_port, restPort=rest_port, authentication="sesame")
    with started(CoreConfig(gRPCPort=cores, dataDirectory=tmp_path), config) as (_, receiver):
        assert (receiver.port, receiver.http_port) == (grpc_port, rest_port)
        assert receiver._posted.front is None
        collect(grpc_port, b"x", token="sesame")
        with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
            collect(grpc_port, b"x")
        with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
            collect(cores, b"x", token="sesame")
        url = f"http://{HOST}:{rest_port}/v3/management/keepAlive"
        for token, status in (("sesame", 200), ("barley", 401)):
            answer = httpx.post(
                url,
                json={"service": "a"},
                headers={"Authentication": token},
                trust_env=False,
                timeout=60,
            )
            assert answer.status_code == status
        assert not (tmp_path / "receiver.sock").exists()


def test_on_cores_port_agents_speak_cores_tls_and_show_the_receivers_token(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    made = authority.issue_cert(HOST)
    made.private_key_pem.write_to_path(key)
    made.cert_chain_pems[0].write_to_path(certificate)
    core_config = CoreConfig(
        gRPCPort=0,
        gRPCSslEnabled=True,
        gRPCSslKeyPath=key,
        gRPCSslCertChainPath=certificate,
        dataDirectory=tmp_path,
    )
    with started(core_config, SharingServerConfig(authentication="sesame")) as (_, receiver):
        assert receiver._posted.front is not None
        collect(receiver.port, b"x", token="sesame", authority=authority)
        with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
            collect(receiver.port, b"x", authority=authority)
        with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
            collect(receiver.port, b"x", token="sesame")


def test_files_that_are_not_there_end_the_start_before_a_port_is_taken(tmp_path: Path) -> None:
    core_config = CoreConfig(gRPCPort=0, dataDirectory=tmp_path)
    missing = SharingServerConfig(authenticationFile=tmp_path / "tokens")
    with (
        pytest.raises(ConfigError, match="tokens: No such file"),
        started(core_config, missing),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_queue_is_what_the_configuration_says(tmp_path: Path) -> None:
    config = SharingServerConfig(
        queueDurability="fsync", queueFlushPeriodMs=77, queueFlushCount=5, queueSegmentBytes=MIB
    )
    with started(CoreConfig(gRPCPort=0, dataDirectory=tmp_path), config) as (core, receiver):
        told = receiver.settings(core.node, AccessSettings())
        queue = queue_settings(ReceiverSettings.from_json(told.to_json()))
        assert (queue.durability, queue.flush_period_ms, queue.flush_count) == ("fsync", 77, 5)
        assert (queue.segment_bytes, queue.when_full) == (MIB, "reject")
        collect(receiver.port, b"synced")
        reader = Reader(queue.directory)
        reader.start()
        [run] = reader.runs(0, reader.writing())
        assert [bytes(one) for one in run.payloads()] == [b"synced"]
        reader.stop()

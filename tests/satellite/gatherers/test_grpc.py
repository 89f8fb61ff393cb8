"""The gRPC server as the satellite's configuration makes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from skyfarer.base.errors import ConfigError
from skyfarer.satellite.gatherers.grpc import AcceptLimitConfig, GrpcGatherer, GrpcServerConfig
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.relay import ClientRelay
from skyfarer.wire.rpc import BY_PATH, Handling, Kind

KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
TASKS = "/ProfileTask/getProfileTaskCommands"
ANY_PORT = "127.0.0.1:0"
TIMEOUT_S = 120.0
ENDLESS = bytes.fromhex("0a" + "ff" * 9 + "01")
NESTED = bytes.fromhex("1a 0b 32" + "ff" * 9 + "01")  # the same in a nested message


class Pipe:
    def __init__(self) -> None:
        self.kept: list[tuple[int, bytes]] = []

    def keep(self, kind: int, payloads: Sequence[bytes]) -> None:
        self.kept.extend((kind, payload) for payload in payloads)

    def doors(self) -> dict[str, Any]:
        return {p: self.keep for p, rpc in BY_PATH.items() if rpc.handling is Handling.KEEP}


def gatherer(**config: Any) -> GrpcGatherer:
    return GrpcGatherer(GrpcServerConfig(address=ANY_PORT, **config), Registry(), Health())


async def ask(channel: grpc.Channel, path: str, message: bytes) -> bytes:
    call = channel.unary_unary(path)
    return bytes(await asyncio.to_thread(lambda: call(message, timeout=TIMEOUT_S)))


def test_it_serves_what_it_was_told_to_before_it_started_and_while_it_runs() -> None:
    async def scenario() -> None:
        one, two, server = Pipe(), Pipe(), gatherer()
        server.serve(one.doors(), None)
        await server.start()
        host, port = server.address
        assert (host, port > 0) == ("127.0.0.1", True)
        with grpc.insecure_channel(f"{host}:{port}") as channel:
            await ask(channel, KEEP_ALIVE, b"first")
            server.serve(two.doors(), None)
            await ask(channel, KEEP_ALIVE, b"second")
        await server.stop(1.0)
        await server.stop(1.0)
        assert one.kept == [(Kind.INSTANCE_PING, b"first")]
        assert two.kept == [(Kind.INSTANCE_PING, b"second")]

    asyncio.run(scenario())


def test_with_refuse_malformed_the_top_level_of_a_message_is_judged_and_nothing_inside() -> None:
    async def scenario() -> None:
        pipe, server = Pipe(), gatherer(refuse_malformed=True)
        server.serve(pipe.doors(), None)
        await server.start()
        with grpc.insecure_channel(f"127.0.0.1:{server.address[1]}") as channel:
            with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
                await ask(channel, KEEP_ALIVE, ENDLESS)
            await ask(channel, KEEP_ALIVE, NESTED)
        await server.stop(1.0)
        assert pipe.kept == [(Kind.INSTANCE_PING, NESTED)]

    asyncio.run(scenario())


def test_what_an_agent_asks_is_answered_by_the_oap() -> None:
    async def scenario() -> None:
        oap, server = Upstream(), gatherer()
        oap.answers["/skywalking.v3.ProfileTask/getProfileTaskCommands"] = b"commands"
        await oap.start()
        client = GrpcClient(ClientSettings("127.0.0.1", oap.port))
        await client.start()
        server.serve({}, ClientRelay(lambda: client))
        await server.start()
        with grpc.insecure_channel(f"127.0.0.1:{server.address[1]}") as channel:
            assert await ask(channel, TASKS, b"query") == b"commands"
        assert [(path, message) for path, message, _ in oap.asked] == [
            ("/skywalking.v3.ProfileTask/getProfileTaskCommands", b"query")
        ]
        await server.stop(1.0)
        await client.stop(1.0)
        await oap.stop()

    asyncio.run(scenario())


def test_with_a_certificate_agents_must_speak_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())

    async def scenario() -> None:
        pipe, server = Pipe(), gatherer(tls_cert_file=certificate, tls_key_file=key)
        server.serve(pipe.doors(), None)
        await server.start()
        address = f"127.0.0.1:{server.address[1]}"
        believed = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
        with grpc.secure_channel(address, believed) as channel:
            await ask(channel, KEEP_ALIVE, b"secret")
        with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError):
            await ask(channel, KEEP_ALIVE, b"plain")
        await server.stop(1.0)
        assert pipe.kept == [(Kind.INSTANCE_PING, b"secret")]

    asyncio.run(scenario())


def test_a_certificate_that_is_not_there_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    server = gatherer(tls_cert_file=tmp_path / "none.pem", tls_key_file=tmp_path / "none.key")
    with pytest.raises(ConfigError, match=r"none\.pem"):
        asyncio.run(server.start())


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"max_recv_msg_size": 0}, "limits"),
        ({"max_relayed_calls": 0}, "limits"),
        ({"accept_limit": AcceptLimitConfig(connections_per_source=0)}, "limits"),
        ({"idle_timeout": "0s"}, "timeouts"),
        ({"message_timeout": "soon"}, "duration"),
        ({"tls_cert_file": Path("a.pem")}, "go together"),
        ({"tls_client_ca_file": Path("ca.pem")}, "needs tls_cert_file"),
    ],
)
def test_a_wrong_configuration_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        GrpcServerConfig(**wrong)

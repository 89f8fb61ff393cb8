"""Our server, with a relay, between grpcio's client and grpcio's server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any

import grpc
import pytest

from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.relay import ClientRelay
from skyfarer.wire.rpc import RPCS, Handling, Rpc, Streaming

CONFIGURATIONS = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"


KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"


PROFILER = "/skywalking.v10.AsyncProfilerTask/collect"


GO_PROFILE = "/skywalking.v3.ProfileTask/goProfileReport"


ASKED = tuple(rpc for rpc in RPCS if rpc.handling is Handling.ASK)


TIMEOUT_S = 120.0


Answer = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]


def until(holds: Callable[[], bool]) -> None:
    eventually(holds, TIMEOUT_S, "the state this test waits for")


class Backend(grpc.GenericRpcHandler):
    """A grpcio server; `answer` makes the answers to a call's messages, however it streams."""

    def __init__(self) -> None:
        self.answer: Answer = echo
        self.path = ""
        self.metadata: dict[str, str] = {}
        self.begun = threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(64), handlers=[self])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        self.path = details.method
        self.metadata = {name: str(value) for name, value in details.invocation_metadata}
        return grpc.stream_stream_rpc_method_handler(self._handle)

    def _handle(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self.begun.set()
        yield from self.answer(messages, context)


def echo(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """One answer to the whole call."""
    yield b"commands for " + b"".join(messages)


class Rig:
    """Our server between `channel` and `backend`; `client` is what it asks with."""

    def __init__(self, serve: Callable[..., Any], thread: Any, port: int, **settings: Any) -> None:
        self.thread = thread
        self.registry = Registry()
        call_timeout_s = settings.pop("call_timeout_s", TIMEOUT_S)
        token = settings.pop("token", ())
        self.client = GrpcClient(
            ClientSettings("127.0.0.1", port, call_timeout_s=call_timeout_s), self.registry
        )
        thread.run(self.client.start())
        relay = ClientRelay(lambda: self.client, lambda: token)
        self.serving = serve(relay=relay, **settings)
        self.channel = grpc.insecure_channel(self.serving.address)

    def unary(self, path: str, message: bytes, **options: Any) -> bytes:
        return bytes(self.channel.unary_unary(path)(message, **{"timeout": TIMEOUT_S, **options}))

    def held(self) -> tuple[int, int, int]:
        receiver = self.serving.server._receiver
        return receiver.relayed.calls, receiver.relayed.bytes, receiver.unfinished.bytes

    def close(self) -> None:
        self.channel.close()
        until(lambda: self.held() == (0, 0, 0))
        self.thread.run(self.client.stop(1.0))


Rigs = Callable[..., Rig]


def status_of(caught: pytest.ExceptionInfo[grpc.RpcError]) -> tuple[grpc.StatusCode, str]:
    code = caught.value.code()
    assert isinstance(code, grpc.StatusCode)
    return code, caught.value.details()


def call(rig: Rig, rpc: Rpc, messages: Sequence[bytes]) -> bytes:
    if rpc.streaming is Streaming.UNARY:
        return rig.unary(rpc.path, messages[0])
    if rpc.streaming is Streaming.CLIENT_STREAM:
        return bytes(rig.channel.stream_unary(rpc.path)(iter(messages), timeout=TIMEOUT_S))
    answers = rig.channel.stream_stream(rpc.path)(iter(messages), timeout=TIMEOUT_S)
    return b"".join(answers)

"""An OAP as grpcio makes it: a server that takes any call and keeps what came, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass
from typing import Any

import grpc

from skyfarer.testing.programs import free_port

THREADS = 8


@dataclass(frozen=True)
class Call:
    """One that was answered OK."""

    path: str
    metadata: dict[str, str]
    messages: tuple[bytes, ...]


Answer = Callable[[Call, grpc.ServicerContext], bytes]


def _welcome(call: Call, context: grpc.ServicerContext) -> bytes:
    return b""


class GrpcUpstream(grpc.GenericRpcHandler):
    """May be stopped and started again, at one address. `answer` may end a call as it likes.

    `credentials` make it speak TLS. All messages of a call are read before it is answered.
    """

    def __init__(
        self,
        answer: Answer = _welcome,
        credentials: grpc.ServerCredentials | None = None,
        options: Sequence[tuple[str, Any]] = (),
        host: str = "127.0.0.1",
    ) -> None:
        self._host = host
        self.answer = answer
        self.calls: list[Call] = []
        self.port = free_port()
        self._credentials = credentials
        self._options = options
        self._server: grpc.Server | None = None

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    @property
    def messages(self) -> list[bytes]:
        return [message for call in self.calls for message in call.messages]

    def start(self) -> GrpcUpstream:
        pool = futures.ThreadPoolExecutor(THREADS)
        self._server = grpc.server(pool, handlers=[self], options=self._options)
        where = f"{self._host}:{self.port}"
        if self._credentials is None:
            self._server.add_insecure_port(where)
        else:
            self._server.add_secure_port(where, self._credentials)
        self._server.start()
        return self

    def stop(self, grace_s: float = 0.0) -> None:
        """Says so to its clients first, with a grace. Safe twice and unstarted."""
        server, self._server = self._server, None
        if server is not None:
            server.stop(grace_s).wait()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        metadata = {name: str(value) for name, value in details.invocation_metadata}

        def handle(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            call = Call(str(details.method), metadata, tuple(messages))
            answered = self.answer(call, context)
            self.calls.append(call)
            return answered

        return grpc.stream_unary_rpc_method_handler(handle)

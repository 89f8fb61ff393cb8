"""Our ends of the wire in a thread of their own, so that grpcio or raw sockets can be the other."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import Event, ResponseReceived, SettingsAcknowledged, StreamEnded, TrailersReceived
from h2.settings import SettingCodes, Settings

from skyfarer.base.units import KIB
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.relay import Relay
from skyfarer.wire.rpc import RPCS, Handling
from skyfarer.wire.server import GrpcServer, ServerSettings
from skyfarer.wire.tokens import Tokens
from wire.relaying import Backend, Rig

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
TIMEOUT_S = 120.0


class LoopThread:
    """An event loop that runs beside the test."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(TIMEOUT_S)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT_S)
        self.loop.close()


class Serving:
    """A running server and what it kept; `fault`, when set, is called instead of keeping."""

    def __init__(
        self,
        thread: LoopThread,
        settings: ServerSettings,
        relay: Relay | None = None,
        tokens: Callable[[Registry], Tokens] | None = None,
    ) -> None:
        self.appends: list[tuple[int, list[bytes]]] = []
        self.fault: Callable[[Sequence[bytes]], None] | None = None
        self.registry = Registry()
        self.health = Health()
        self.health.started()
        self.thread = thread
        doors = {rpc.path: self._append for rpc in RPCS if rpc.handling is Handling.KEEP}
        self.server = GrpcServer(
            *(settings, doors, relay, self.registry, self.health),
            tokens=tokens(self.registry) if tokens else None,
        )
        thread.run(self.server.start())

    def _append(self, kind: int, payloads: Sequence[bytes]) -> None:
        if self.fault is not None:
            self.fault(payloads)
        self.appends.append((kind, list(payloads)))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def kept(self, kind: int) -> list[bytes]:
        return [one for its, payloads in self.appends if its == kind for one in payloads]

    def stop(self, timeout_s: float = 5.0) -> None:
        self.thread.run(self.server.stop(timeout_s))

    def counted(self, line: str) -> bool:
        return line in self.registry.render().splitlines()


class Raw:
    """An h2 client that does as it is told. `settings` are sent first."""

    def __init__(
        self,
        port: int,
        settings: dict[SettingCodes, int] | None = None,
        source: str = "127.0.0.1",
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S, (source, 0))
        self.h2 = H2Connection(H2Configuration(client_side=True, validate_outbound_headers=False))
        self.h2.local_settings = Settings(client=True, initial_values=settings)
        self.h2.initiate_connection()
        self.events: list[Event] = []
        self.flush()
        self.until(SettingsAcknowledged)

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def open(self, path: str = COLLECT, *extra: tuple[str, str], **changes: str) -> int:
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "test"}
        fields |= {"te": "trailers", "content-type": "application/grpc"}
        fields |= {name.replace("_", "-"): value for name, value in changes.items()}
        stream_id = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream_id, [*fields.items(), *extra])
        return stream_id

    def send(self, stream_id: int, data: bytes, end: bool = False) -> None:
        """In as many frames as it needs; there must be window enough for it."""
        for start in range(0, len(data), 16 * KIB):
            piece = data[start : start + 16 * KIB]
            self.h2.send_data(stream_id, piece, end and start + 16 * KIB >= len(data))
        self.flush()

    def until(self, kind: type[Event], stream_id: int | None = None) -> Any:
        """The first event of that kind; those before it stay in `events`."""
        while True:
            for event in self.events:
                if type(event) is kind and stream_id in (None, getattr(event, "stream_id", None)):
                    self.events.remove(event)
                    return event
            data = self.socket.recv(64 * KIB)
            assert data, f"closed before {kind.__name__}; had {self.events}"
            self.events.extend(self.h2.receive_data(data))
            self.flush()

    def trailers(self, stream_id: int) -> dict[bytes, bytes]:
        self.until(StreamEnded, stream_id)
        found: dict[bytes, bytes] = {}
        for event in self.events:
            if (
                isinstance(event, (ResponseReceived, TrailersReceived))
                and event.stream_id == stream_id
            ):
                found.update(event.headers)
        return found

    def closed(self) -> bool:
        """Reads on to the end; True when the server ends it."""
        try:
            while self.socket.recv(64 * KIB):
                pass
        except ConnectionError:
            pass
        return True


@pytest.fixture
def loop_thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture
def serve(loop_thread: LoopThread) -> Iterator[Callable[..., Serving]]:
    started: list[Serving] = []

    def start(
        relay: Relay | None = None,
        tokens: Callable[[Registry], Tokens] | None = None,
        **changes: Any,
    ) -> Serving:
        settings = replace(ServerSettings(host="127.0.0.1", port=0), **changes)
        started.append(Serving(loop_thread, settings, relay, tokens))
        return started[-1]

    yield start
    for serving in started:
        serving.stop(timeout_s=0.0)


@pytest.fixture
def raw() -> Iterator[Callable[..., Raw]]:
    clients: list[Raw] = []

    def connect(serving: Any, *options: Any, **more: Any) -> Raw:
        clients.append(Raw(serving.server.port, *options, **more))
        return clients[-1]

    yield connect
    for client in clients:
        client.socket.close()


@pytest.fixture
def client(loop_thread: LoopThread) -> Iterator[Callable[..., Callable[..., bytes]]]:
    """`client(port)` gives a function that sends and waits."""
    started: list[GrpcClient] = []

    def connect(port: int, registry: Registry | None = None, **settings: Any) -> Any:
        made = GrpcClient(ClientSettings("127.0.0.1", port, **settings), registry)
        started.append(made)
        loop_thread.run(made.start())
        return lambda *call: loop_thread.run(made.send(*call))

    yield connect
    for made in started:
        loop_thread.run(made.stop(1.0))
        loop_thread.run(made.stop(1.0))


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    yield made
    made.server.stop(0).wait()


@pytest.fixture
def rig(
    serve: Callable[..., Any], loop_thread: Any, backend: Backend
) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(**settings: Any) -> Rig:
        made.append(Rig(serve, loop_thread, settings.pop("port", backend.port), **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()

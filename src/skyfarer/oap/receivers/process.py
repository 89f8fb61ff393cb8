"""A receiver process: gRPC and HTTP in, ingest queue out.

Its arguments are the descriptors of the parent's listening sockets: that of gRPC, and that of HTTP
if it has a port of its own. The ports are taken before there is a queue to append to, and
connections wait in the kernel until there is: at the start, and while a receiver that died is
started again.

It talks to its parent in JSON lines: standard input brings one line of settings, then answers
(`asking`) and, when it ends, the order to stop (so a receiver never outlives a killed parent);
standard output carries `ready`, then questions and a snapshot of the metrics every second, or one
`failed` line.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from skyfarer.base.errors import SkyfarerError
from skyfarer.oap.receivers.access import AccessSettings
from skyfarer.oap.receivers.asking import QUESTIONS_MAX, Asking
from skyfarer.oap.receivers.collecting import CollectSettings, http_server
from skyfarer.oap.receivers.lines import ParentLines
from skyfarer.oap.receivers.readmission import Readmitting
from skyfarer.oap.receivers.resends import Resends
from skyfarer.queue.flusher import Flusher
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.telemetry import logs, table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import RPCS, Kind, Streaming
from skyfarer.wire.server import GrpcServer, ServerSettings
from skyfarer.wire.tls import HTTP_2

REPORT_INTERVAL_S = 1.0
STOP_TIMEOUT_S = 5.0
CONNECTIONS_PER_SOURCE_MAX = ServerSettings.connections_max // 2
IDLE_TIMEOUT_S = 600.0  # of a connection without a call; agents connect again unnoticed
MESSAGE_TIMEOUT_S = 60.0  # from the first byte of a message to its last
# A row of the table has a kind, and yet its answer depends on what the message says.
ANSWERED = frozenset({Kind.V2_INSTANCE_PING})
KEPT = tuple(
    rpc.path
    for rpc in RPCS
    if rpc.kind not in ANSWERED | {Kind.NONE} and rpc.streaming is not Streaming.BIDI
)


@dataclass(frozen=True)
class ReceiverSettings:
    directory: str
    consumers: tuple[str, ...]
    segment_bytes: int
    capacity_bytes: int
    record_bytes_max: int
    streams_max: int
    durability: Literal["append", "fsync"] = "append"
    flush_period_ms: int = 1000
    flush_count: int = 10_000
    log_level: str = "INFO"
    collect: CollectSettings = field(default_factory=CollectSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    refuse_malformed: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ReceiverSettings:
        values = json.loads(text)
        values["collect"] = CollectSettings(**values["collect"])
        values["access"] = AccessSettings.of(values["access"])
        return cls(**{**values, "consumers": tuple(values["consumers"])})


async def receive(
    settings: ReceiverSettings,
    listener: socket.socket,
    lines: ParentLines,
    stopped: asyncio.Event,
    http_listener: socket.socket | None = None,
) -> None:
    """Serves until `stopped`; then refuses new calls and lets those in flight end."""
    registry, health = Registry(), Health()
    tokens = settings.access.tokens(registry)
    bounds = queue_settings(settings)
    queue = Writer(bounds)
    flusher = Flusher(queue, bounds)
    resends = Resends(queue, Path(settings.directory), registry)
    queue.start()
    flusher.start()
    resends.start()
    asking = Asking(lines.say, queue.append, registry)
    http = http_server(
        settings.collect, settings.access, tokens, http_listener, queue.append, asking, registry
    )
    readmitting = Readmitting(lines.say, resends.append, queue)
    hearing = asyncio.create_task(_hear(lines, asking, readmitting, stopped))
    tls = settings.access.grpc_tls.server(HTTP_2)
    server = GrpcServer(
        _server_settings(settings),
        dict.fromkeys(KEPT, resends.append),
        asking,
        registry,
        health,
        tls.context() if tls is not None else None,
        listener=listener,
        tokens=tokens,
    )
    try:
        await server.start()
        if http is not None:
            await http.start()
        health.started()
        lines.say({"ready": queue.queue_id})
        while not stopped.is_set():
            registry.set(table.QUEUE_ACCEPTED, queue.writing)
            lines.report({"metrics": registry.snapshot()})
            await _wait(stopped, REPORT_INTERVAL_S)
        await asyncio.gather(*(one.stop(STOP_TIMEOUT_S) for one in (server, http) if one))
    finally:
        hearing.cancel()
        resends.stop()
        flusher.stop(STOP_TIMEOUT_S)
        queue.stop(STOP_TIMEOUT_S)


def queue_settings(settings: ReceiverSettings) -> QueueSettings:
    return QueueSettings(
        directory=Path(settings.directory),
        segment_bytes=settings.segment_bytes,
        capacity_bytes=settings.capacity_bytes,
        record_bytes_max=settings.record_bytes_max,
        when_full="reject",
        consumers=settings.consumers,
        durability=settings.durability,
        flush_period_ms=settings.flush_period_ms,
        flush_count=settings.flush_count,
    )


def _server_settings(settings: ReceiverSettings) -> ServerSettings:
    return ServerSettings(
        message_bytes_max=settings.record_bytes_max,
        streams_max=settings.streams_max or ServerSettings.streams_max,
        connections_per_source_max=CONNECTIONS_PER_SOURCE_MAX,
        idle_timeout_s=IDLE_TIMEOUT_S,
        message_timeout_s=MESSAGE_TIMEOUT_S,
        relayed_calls_max=QUESTIONS_MAX,
        refuse_malformed=settings.refuse_malformed,
    )


async def _wait(stopped: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stopped.wait(), seconds)
    except TimeoutError:
        return


async def _hear(
    lines: ParentLines, asking: Asking, readmitting: Readmitting, stopped: asyncio.Event
) -> None:
    """Until there is no more to hear, which is the order to stop; nobody is answered then."""
    try:
        while line := await lines.read():
            if not await readmitting.hear(line):
                asking.hear(line)
    finally:
        asking.close()
        stopped.set()


async def _main(listener: socket.socket, http_listener: socket.socket | None = None) -> int:
    loop, lines = asyncio.get_running_loop(), ParentLines()
    await lines.open()
    settings = ReceiverSettings.from_json((await lines.read()).decode())
    logs.configure("oap-receiver", settings.log_level)
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    # Ctrl-C reaches the whole process group: the parent stops us in its own order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        await receive(settings, listener, lines, stopped, http_listener)
    except (SkyfarerError, OSError) as error:
        lines.say({"failed": f"the receiver cannot serve: {error}"})
        return 1
    finally:
        await lines.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(*(socket.socket(fileno=int(one)) for one in sys.argv[1:]))))

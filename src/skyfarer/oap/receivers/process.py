"""A receiver process: gRPC in, ingest queue out.

Its one argument is the descriptor of the parent's listening socket. The port is taken before there
is a queue to append to, and connections wait in the kernel until there is: at the start, and while
a receiver that died is started again.

It talks to its parent in JSON lines: standard input brings one line of settings and, when it ends,
the order to stop (so a receiver never outlives a killed parent); standard output carries `ready`,
then a snapshot of the metrics every second, or one `failed` line.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from skyfarer.base.errors import SkyfarerError
from skyfarer.oap.receivers.resends import Resends
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.telemetry import logs, table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import RPCS, Kind
from skyfarer.wire.server import GrpcServer, ServerSettings

REPORT_INTERVAL_S = 1.0
STOP_TIMEOUT_S = 5.0
# What the pipeline can read of its queue.
KEPT = frozenset({Kind.SEGMENT, Kind.INSTANCE_PROPERTIES, Kind.INSTANCE_PING})

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReceiverSettings:
    directory: str
    consumers: tuple[str, ...]
    segment_bytes: int
    capacity_bytes: int
    record_bytes_max: int
    streams_max: int
    log_level: str = "INFO"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ReceiverSettings:
        values = json.loads(text)
        return cls(**{**values, "consumers": tuple(values["consumers"])})


async def receive(
    settings: ReceiverSettings, listener: socket.socket, stopped: asyncio.Event
) -> None:
    """Serves until `stopped`; then refuses new calls and lets those in flight end."""
    registry, health = Registry(), Health()
    queue = Writer(
        QueueSettings(
            directory=Path(settings.directory),
            segment_bytes=settings.segment_bytes,
            capacity_bytes=settings.capacity_bytes,
            record_bytes_max=settings.record_bytes_max,
            when_full="reject",
            consumers=settings.consumers,
        )
    )
    resends = Resends(queue, Path(settings.directory), registry)
    queue.start()
    resends.start()
    server = GrpcServer(
        ServerSettings(
            message_bytes_max=settings.record_bytes_max,
            streams_max=settings.streams_max or ServerSettings.streams_max,
        ),
        {rpc.path: resends.append for rpc in RPCS if rpc.kind in KEPT},
        None,
        registry,
        health,
        listener=listener,
    )
    try:
        await server.start()
        health.started()
        _say({"ready": queue.queue_id})
        while not stopped.is_set():
            registry.set(table.QUEUE_ACCEPTED, queue.writing)
            _say({"metrics": registry.snapshot()})
            await _wait(stopped, REPORT_INTERVAL_S)
        await server.stop(STOP_TIMEOUT_S)
    finally:
        resends.stop()
        queue.stop(STOP_TIMEOUT_S)


async def _wait(stopped: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stopped.wait(), seconds)
    except TimeoutError:
        return


async def _until_parent_is_gone(reader: asyncio.StreamReader, stopped: asyncio.Event) -> None:
    await reader.read()
    stopped.set()


async def _main(listener: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    settings = ReceiverSettings.from_json((await reader.readline()).decode())
    logs.configure("oap-receiver", settings.log_level)
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    # Ctrl-C reaches the whole process group: the parent stops us in its own order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watcher = asyncio.create_task(_until_parent_is_gone(reader, stopped))
    try:
        await receive(settings, listener, stopped)
    except (SkyfarerError, OSError) as error:
        _say({"failed": f"the receiver cannot serve: {error}"})
        return 1
    finally:
        watcher.cancel()
    return 0


def _say(message: dict[str, Any]) -> None:
    """A parent that is gone cannot listen; the end of standard input stops us then."""
    try:
        print(json.dumps(message), flush=True)
    except BrokenPipeError:
        log.warning("the parent process does not listen any more")


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(socket.socket(fileno=int(sys.argv[1])))))

"""A real receiver that can be posted to: at a port of its own, or by way of the main process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path

import httpx

from skyfarer.base.units import KIB, MIB
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.query import QueryServer
from skyfarer.oap.receivers.access import AccessSettings
from skyfarer.oap.receivers.collecting import CollectSettings
from skyfarer.oap.receivers.front import Front
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.queue.reader import Reader
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader

HOST = "127.0.0.1"
BODY_BYTES_MAX = 64 * KIB
TIMEOUT_S = 120.0
WAYS = ("own port", "core's port")


@dataclass
class Receiving:
    directory: Path
    supervisor: Supervisor
    registry: Registry
    http_port: int
    http: httpx.Client

    def kept(self) -> list[tuple[int, bytes]]:
        reader = Reader(self.directory / "ingest")
        reader.start()
        found: list[tuple[int, bytes]] = []
        for run in reader.runs(0, reader.writing()):
            found += zip(run.kinds(), map(bytes, run.payloads()), strict=True)
        reader.stop()
        return found


def settings(directory: Path, access: AccessSettings, **collect: object) -> ReceiverSettings:
    return ReceiverSettings(
        directory=str(directory / "ingest"),
        consumers=("analysis",),
        segment_bytes=MIB,
        capacity_bytes=4 * MIB,
        record_bytes_max=MIB // 4,
        streams_max=0,
        log_level="ERROR",
        collect=replace(CollectSettings(body_bytes_max=BODY_BYTES_MAX), **collect),  # type: ignore[arg-type]
        access=access,
    )


@contextmanager
def receiving(
    directory: Path, way: str, access: AccessSettings | None = None
) -> Iterator[Receiving]:
    registry, health, access = Registry(), Health(), access or AccessSettings()
    listener = socket.create_server((HOST, 0))
    own = socket.create_server((HOST, 0)) if way == "own port" else None
    inner = "" if own is not None else str(directory / "receiver.sock")
    supervisor = Supervisor(
        settings(directory, access, socket=inner), listener, registry, health, http_listener=own
    )
    front = None if own is not None else Front(Path(inner))
    query = query_server(front, registry, health)
    port = query.port if own is None else own.getsockname()[1]
    scheme = "https" if own is not None and access.http_tls.certificate else "http"
    query.start()
    try:
        supervisor.start()
        with httpx.Client(
            base_url=f"{scheme}://{HOST}:{port}", trust_env=False, timeout=TIMEOUT_S
        ) as http:
            yield Receiving(directory, supervisor, registry, port, http)
    finally:
        supervisor.stop()
        query.stop(5)


def query_server(front: Front | None, registry: Registry, health: Health) -> QueryServer:
    reader = MemoryReader()
    listener = socket.create_server((HOST, 0))
    return QueryServer(
        *(listener, reader, reader.ledger, health, registry, HandClock(), UTC),
        plan=Plan(()),
        posts=front,
    )

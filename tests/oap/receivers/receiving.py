"""A real receiver with its supervisor, and a registry behind it that is as slow as a test wants."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from oap.receivers.answers.shelf import Shelf, inventory_of
from oap.receivers.no_tasks import NothingConfigured
from skyfarer.base.clock import SystemClock
from skyfarer.base.units import MIB
from skyfarer.oap.core.inventory import Inventory
from skyfarer.oap.receivers.answering import HOLD_BACK_S, Answering
from skyfarer.oap.receivers.answers.desk import Desk
from skyfarer.oap.receivers.answers.naming import NameLengths
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.queue.reader import Reader
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import Kind


def settings(
    directory: Path, capacity_bytes: int = 16 * MIB, refuse_malformed: bool = False
) -> ReceiverSettings:
    return ReceiverSettings(
        directory=str(directory / "ingest"),
        consumers=("analysis",),
        segment_bytes=4 * MIB,
        capacity_bytes=capacity_bytes,
        record_bytes_max=MIB,
        streams_max=0,
        log_level="ERROR",
        refuse_malformed=refuse_malformed,
    )


class Analysis:
    """Stores the inventories of the queue, a batch every `every_s`, and says so."""

    def __init__(self, directory: Path, shelf: Shelf, answering: Answering, every_s: float) -> None:
        self._queue = Reader(directory / "ingest")
        self._shelf = shelf
        self._answering = answering
        self._every_s = every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.next = 0
        self.records = 0

    def start(self) -> None:
        self._queue.start()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(10)
        self._queue.stop()

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            end = self._queue.writing()
            found = []
            for run in self._queue.runs(self.next, end):
                kinds = zip(run.kinds(), run.payloads(), strict=True)
                found += [inventory_of(bytes(p)) for kind, p in kinds if kind == Kind.INVENTORY]
            self.next, self.records = end, self.records + len(found)
            self._shelf.store(*found)
            self._answering.applied()


class Rig:
    def __init__(self, directory: Path, hold_back_s: float, refuse_malformed: bool = False) -> None:
        self.directory = directory
        self.registry = Registry()
        self.shelf = Shelf()
        self.answering = Answering(self.registry, hold_back_s)
        self.desk = Desk(self.shelf, NothingConfigured(), NameLengths(), SystemClock())
        listener, http_listener = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        self.supervisor = Supervisor(
            settings(directory, refuse_malformed=refuse_malformed),
            *(listener, self.registry, Health()),
            http_listener=http_listener,
            answering=self.answering,
        )
        self.address = f"127.0.0.1:{self.supervisor.port}"
        self.http_url = f"http://127.0.0.1:{http_listener.getsockname()[1]}"

    def kept(self) -> list[Inventory]:
        return [inventory_of(p) for kind, p in self.received() if kind == Kind.INVENTORY]

    def received(self) -> list[tuple[int, bytes]]:
        reader = Reader(self.directory / "ingest")
        reader.start()
        found: list[tuple[int, bytes]] = []
        for run in reader.runs(0, reader.writing()):
            found += zip(run.kinds(), map(bytes, run.payloads()), strict=True)
        reader.stop()
        return found

    def receiver(self) -> psutil.Process:
        """Of several rigs, that of the one started last."""
        children = psutil.Process(os.getpid()).children()
        found = [one for one in children if "skyfarer.oap.receivers.process" in one.cmdline()]
        return max(found, key=psutil.Process.create_time)


@contextmanager
def rig(
    directory: Path,
    *,
    hold_back_s: float = HOLD_BACK_S,
    every_s: float = 0,
    refuse_malformed: bool = False,
) -> Iterator[Rig]:
    """With `every_s` what is kept is analysed; without, nothing ever gets an id."""
    rig = Rig(directory, hold_back_s, refuse_malformed)
    rig.supervisor.start()
    rig.answering.open(rig.desk)
    analysis = Analysis(directory, rig.shelf, rig.answering, every_s)
    if every_s:
        analysis.start()
    try:
        yield rig
    finally:
        if every_s:
            analysis.stop()
        rig.supervisor.stop()

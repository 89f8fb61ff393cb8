"""Parked records in a real storage, and a real queue behind the door that knows numbers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

from contracts.parked_contract import QUEUE, park
from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import RetryableError
from skyfarer.base.units import MIB
from skyfarer.oap.admin.door import Door
from skyfarer.oap.admin.parked import Analysis, ParkedDesk
from skyfarer.oap.core.storage import Parked
from skyfarer.oap.receivers.readmission import Readmission, Readmitting
from skyfarer.oap.receivers.resends import Resends
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.telemetry.metrics import Registry

BEFORE = 20
"""Records that came earlier: parked ones of the tests are among them."""


class Rig:
    """Both ends of the line in one process. `deaf`: the answer is lost, as with a kill after the
    append. `hopeless`: what comes back is parked again at once. `applied` is what analysis has come
    to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.registry = Registry()
        self.storage = EmbeddedStorage()
        self.deaf = self.hopeless = False
        self.applied = 1 << 40
        settings = QueueSettings(
            directory / "ingest",
            segment_bytes=MIB,
            capacity_bytes=4 * MIB,
            record_bytes_max=MIB // 2,
            when_full="reject",
            consumers=("analysis",),
        )
        self.queue = Writer(settings)
        self._resends = Resends(self.queue, directory / "ingest", self.registry)
        self.readmission = Readmission()
        self._readmitting = Readmitting(self._back, self._resends.append, self.queue)
        self.desk = ParkedDesk(
            self.storage,
            self.readmission.readmit,
            Analysis(QUEUE, lambda: self.applied),
            self.registry,
            SystemClock(),
        )
        self.door = Door(directory, self.desk.verbs)

    def start(self) -> None:
        self.storage.start(self.directory / "storage.duckdb", UTC)
        self.queue.start()
        self._resends.start()
        self.queue.append(1, [b"before"] * BEFORE)
        self.readmission.open(self._there)
        self.door.start()

    def stop(self) -> None:
        self.desk.close()
        self.door.stop(10)
        self.readmission.close()
        self._resends.stop()
        self.queue.stop(10)
        self.storage.stop()

    def _there(self, message: Mapping[str, Any]) -> None:
        first = self.queue.writing
        asyncio.run(self._hear(json.dumps(message).encode()))
        if self.hopeless:
            again = range(first, self.queue.writing)
            park(self.storage, *(Parked(at, 1, "undecodable: still", b"?") for at in again))

    async def _hear(self, line: bytes) -> None:
        assert await self._readmitting.hear(line)

    def _back(self, message: Mapping[str, Any]) -> None:
        if self.deaf:
            raise RetryableError("the receiver is gone")
        self.readmission.hear(json.loads(json.dumps(message)))

    def queued(self) -> list[tuple[int, bytes]]:
        reader = Reader(self.directory / "ingest")
        reader.start()
        found: list[tuple[int, bytes]] = []
        for run in reader.runs(0, reader.writing()):
            found += zip(run.kinds(), map(bytes, run.payloads()), strict=True)
        reader.stop()
        return found[BEFORE:]

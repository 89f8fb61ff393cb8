"""A log fetcher over real files and a real queue, its time in the test's hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from skyfarer.queue.consumer import Consumer
from skyfarer.queue.disk import Disk
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.satellite.contracts import Inlet
from skyfarer.satellite.fetchers.log.config import LogFetcherConfig
from skyfarer.satellite.fetchers.log.fetcher import LogFetcher
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.wire.generated.log_pb2 import LogData

KIB = 1024
NOW_MS = 1_790_000_000_000


def settings(directory: Path, **bounds: Any) -> QueueSettings:
    given = {
        "segment_bytes": 512 * KIB,
        "capacity_bytes": 8192 * KIB,
        "record_bytes_max": 400 * KIB,
    }
    return QueueSettings(directory, **{**given, **bounds})


def logs_in(queue: Path, first: int = 0) -> list[LogData]:
    """All that the queue was given from that number on, in order."""
    reader = Reader(queue)
    reader.start()
    runs = list(reader.runs(first, reader.writing()))
    assert not [run for run in runs if run.damaged]
    return [LogData.FromString(bytes(one)) for run in runs for one in run.payloads()]


class Rig:
    """`look` is one second later: what was there then is in the queue. `restart` is a new fetcher
    on the queue as it is."""

    def __init__(self, place: Path) -> None:
        self.logs = place / "logs"
        self.logs.mkdir()
        self.place = place
        self.app = self.logs / "app.log"
        self.clock = HandClock(NOW_MS)
        self.registry = Registry(table.SATELLITE)
        self.health = Health()
        self.queue = place / "queue"
        self.bounds: dict[str, Any] = {}
        self.keys: dict[str, Any] = {"paths": (str(self.logs / "*.log"),)}
        self.interval = "1h"
        self.disk: Disk | None = None
        self.inlet: Callable[[Writer], Inlet] = lambda writer: writer
        self.writer: Writer
        self.fetcher: LogFetcher

    async def start(self, **keys: Any) -> None:
        await self.open(**keys)
        # Behind the first look that the fetcher takes by itself.
        await self.look(0.0)
        await self.look()

    async def open(self, **keys: Any) -> None:
        """Started, and left to itself."""
        self.keys.update(keys)
        self.writer = Writer(settings(self.queue, **self.bounds))
        self.writer.start()
        config = LogFetcherConfig(**{"service": "orders", "interval": self.interval, **self.keys})
        directory = self.place / "fetcher"
        parts = (self.clock, self.registry, self.health)
        inlet = self.inlet(self.writer)
        self.fetcher = LogFetcher(config, inlet, directory, *parts, self.disk)
        await self.fetcher.start()

    async def look(self, later_s: float = 1.0) -> None:
        self.clock.seconds += later_s
        await self.fetcher.look()

    async def stop(self) -> None:
        await self.fetcher.stop(1.0)
        self.writer.stop(0.0)

    async def restart(self, **keys: Any) -> None:
        await self.stop()
        await self.start(**keys)

    def consumer(self) -> Consumer:
        consumer = Consumer(self.queue, "main")
        consumer.start()
        return consumer

    def texts(self, first: int = 0) -> list[str]:
        return [log.body.text.text for log in logs_in(self.queue, first)]

    def append(self, content: str | bytes, path: Path | None = None) -> None:
        data = content.encode() if isinstance(content, str) else content
        with (path or self.app).open("ab") as file:
            file.write(data)

    def metric(self, name: str) -> float:
        lines = self.registry.render().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def numbered(first: int, end: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, end))


def expected(first: int, end: int) -> list[str]:
    return numbered(first, end).splitlines()

"""A queue and the door that knows what it has, and records that say which they are."""

from __future__ import annotations

from pathlib import Path

from skyfarer.base.units import KIB
from skyfarer.oap.receivers.journal import Journal
from skyfarer.oap.receivers.producers import Bounds
from skyfarer.oap.receivers.resends import Resends
from skyfarer.queue.disk import Disk
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.numbering import Number, Numbered
from skyfarer.wire.split import join_repeated

KIND = 5


class Door:
    """A queue and its door, as one process has them."""

    def __init__(
        self,
        directory: Path,
        disk: Disk | None = None,
        notes_bytes: int = 8 * KIB,
        bounds: Bounds | None = None,
    ) -> None:
        self.directory = directory
        self.registry = Registry()
        self.queue = Writer(
            QueueSettings(
                directory=directory,
                segment_bytes=64 * KIB,
                capacity_bytes=256 * KIB,
                record_bytes_max=4 * KIB,
                when_full="reject",
                consumers=("analysis",),
            ),
            disk,
        )
        journal = Journal(directory, disk, notes_bytes)
        self.resends = Resends(self.queue, directory, self.registry, bounds, journal)

    def __enter__(self) -> Door:
        self.queue.start()
        self.resends.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.resends.stop()
        self.queue.stop(0.0)

    def send(self, *numbers: Number, producer: str = "sat", first: int = 0) -> None:
        self.resends.append(KIND, message(*numbers, producer=producer, first=first))

    def metric(self, line: str) -> bool:
        return line in self.registry.render().splitlines()


def message(*numbers: Number, producer: str = "sat", first: int = 0) -> Numbered:
    said = Numbered(producer, first)
    for number in numbers:
        said.add(payload(producer, number), number)
    return said


def payload(producer: str, number: Number) -> bytes:
    if isinstance(number, int):
        return b"%s:%d" % (producer.encode(), number)
    return join_repeated([b"%s:%d" % (producer.encode(), one) for one in number], 1)

"""A queue on a faulty disk and the model beside it, before anything happens to them."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis.stateful import RuleBasedStateMachine

from skyfarer.base.errors import SkyfarerError
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.queue.ring import Patience
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.faulty_disk import FaultyDisk

from .histories import CONSUMERS, Fate
from .model import Model

MEMORY = Path("/dev/shm")


class Sleeper:
    """Time passes only while somebody sleeps; `then` happens meanwhile."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.then: Callable[[], None] = lambda: None

    def now_ms(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.then()


class Stage(RuleBasedStateMachine):
    """`met` counts the faults that were really met, over all histories of a type of machine."""

    when_full = "reject"
    durability = "append"
    names: tuple[str, ...] = CONSUMERS
    met: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        self.settings = QueueSettings(
            self.place / "queue",
            16 * KIB,
            64 * KIB,
            4 * KIB,
            self.when_full,  # type: ignore[arg-type]
            self.names,
            self.durability,  # type: ignore[arg-type]
            block_timeout_s=0.01,
        )
        self.model = Model()
        self.sleeper = Sleeper()
        self.no_space: frozenset[str] = frozenset()
        self.flipped: set[tuple[str, int, int]] = set()
        self.state_rotten = False
        self.suspect_known = True
        self.given_up = 0
        self.writer: Writer | None = None
        self.reader: Reader | None = None
        self.consumers: dict[str, Consumer] = {}
        self.disks = {name: FaultyDisk() for name in ("writer", *self.names)}

    def new_disk(self, whose: str, fate: Fate, failed: int = 0) -> FaultyDisk:
        self.disks[whose].die()
        disk = self.disks[whose] = FaultyDisk()
        disk.full = self.no_space
        self.arm(whose, fate, failed)
        return disk

    def arm(self, whose: str, fate: Fate, failed: int, refused: int = 0) -> None:
        """What is to happen within the next step. One fault is met at a time, death apart."""
        disk = self.disks[whose]
        disk.die_at(*fate)
        disk.refuse_at(refused)
        disk.fail_at(0 if refused or self.no_space else failed)

    def new_writer(self, disk: FaultyDisk) -> Writer:
        return Writer(self.settings, disk, Patience(self.sleeper, self.sleeper.sleep))

    def excused(self, error: SkyfarerError, failed: int, refused: int = 0) -> None:
        """Every error has a cause that this machine knows."""
        if "cut or overwritten" in str(error):
            assert len(self.model.records) - 1 in self.model.rotten_entries
            self.met["damage noticed"] += 1
            return
        broken = "Input/output error" in str(error)
        assert failed if broken else self.no_space or refused, error
        self.met["input/output error" if broken else "no space"] += 1

    def committed(self, name: str) -> int:
        return self.model.place(name).committed

    def slowest(self) -> int:
        return min(map(self.committed, self.names))

    def places_rotten(self) -> bool:
        """Then the writer may see less committed than is."""
        return any(self.model.rotten_slots.values())

    def teardown(self) -> None:
        for disk in self.disks.values():
            disk.die()
        shutil.rmtree(self.place)

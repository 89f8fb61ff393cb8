"""core.default: what every other module asks for: identity, clock, metrics, health.

The node connects to the coordinator when core starts, so that one that cannot be reached is told
before Spark is started, and joins when everything runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.oap.boot.membership import Joining
from skyfarer.oap.boot.providers.cluster import Announced
from skyfarer.oap.boot.settings import CoreConfig
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.modes import RunningMode
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider
from skyfarer.oap.core.zone import local_zone
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.process import ProcessMetrics


class Fate:
    """Why the program must end: the first reason given; waiting on it is how it lives."""

    def __init__(self) -> None:
        self._sealed = threading.Event()
        self.failure = ""

    def fail(self, reason: str) -> None:
        if not self._sealed.is_set():
            self.failure = reason
            self._sealed.set()

    def end(self) -> None:
        self._sealed.set()

    def ending(self, timeout_s: float) -> bool:
        """Waits so long at most; True as soon as the program is to end."""
        return self._sealed.wait(timeout_s)

    def wait(self) -> str:
        """The reason of a failure, or nothing when the end was asked for."""
        while not self._sealed.wait(1.0):  # in slices, so that signals are handled
            continue
        return self.failure


@dataclass(frozen=True)
class Node:
    """This OAP node. `fail` ends the program with a reason, for what cannot be mended inside;
    `ending` waits so many seconds at most, and says whether the program is to end. `effective` is
    the whole configuration as it is shown to others (`boot.effective`)."""

    config: CoreConfig
    registry: Registry
    health: Health
    clock: Clock
    zone: tzinfo
    data_directory: Path
    fail: Callable[[str], None]
    ending: Callable[[float], bool]
    mode: RunningMode = RunningMode.DEFAULT
    effective: Mapping[str, str] = field(default_factory=dict)

    @property
    def receives(self) -> bool:
        """Whether agents are listened to, and what they send is analysed."""
        return self.config.role != "Aggregator"


CORE = Module("core", (Node,))


class CoreProvider(Provider):
    """The program tells it what is `effective` of the whole file before it is prepared."""

    name = "default"
    module = CORE
    config = CoreConfig
    requires = ("cluster",)

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        self._joining: Joining | None = None
        self.fate = Fate()
        self.mode = RunningMode.DEFAULT
        self.effective: Mapping[str, str] = {}

    def prepare(self, offer: Offer) -> None:
        directory = self._config.dataDirectory.absolute()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        registry = Registry(table.OAP)
        ProcessMetrics().register(registry)
        clock = SystemClock()
        self.node = Node(
            *(self._config, registry, Health(), clock, local_zone(clock.now_ms()), directory),
            fail=self.fate.fail,
            ending=self.fate.ending,
            mode=self.mode,
            effective=self.effective,
        )
        offer(Node, self.node)

    def listen(self, modules: ModuleHolder) -> None:
        """Listens nowhere; an address that nobody could use is told before anything starts."""
        cluster, node = modules.find("cluster"), self.node
        registers = self._config.role != "Receiver"
        own = cluster.service(Announced).of(self._config) if registers else None
        self._joining = Joining(cluster.service(Coordinator), own, node.health, node.registry)

    def start(self, modules: ModuleHolder) -> None:
        assert self._joining is not None
        self._joining.start()

    def after_start(self) -> None:
        assert self._joining is not None
        self._joining.join()
        self.node.health.started()

    def stop(self, timeout_s: float) -> None:
        if self._joining is not None:
            self._joining.stop(timeout_s)

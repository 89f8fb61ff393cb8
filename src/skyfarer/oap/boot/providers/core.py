"""core.default: what every other module asks for: identity, clock, metrics, health."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.oap.boot.settings import CoreConfig
from skyfarer.oap.core import cluster
from skyfarer.oap.core.modes import RunningMode
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider
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
    `ending` waits so many seconds at most, and says whether the program is to end."""

    config: CoreConfig
    registry: Registry
    health: Health
    clock: Clock
    zone: tzinfo
    data_directory: Path
    fail: Callable[[str], None]
    ending: Callable[[float], bool]
    mode: RunningMode = RunningMode.DEFAULT


CORE = Module("core", (Node,))


class CoreProvider(Provider):
    name = "default"
    module = CORE
    config = CoreConfig
    requires = ("cluster",)

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        self.fate = Fate()
        self.mode = RunningMode.DEFAULT

    def prepare(self, offer: Offer) -> None:
        directory = self._config.dataDirectory.absolute()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        registry = Registry(table.OAP)
        ProcessMetrics().register(registry)
        zone = datetime.now().astimezone().tzinfo or UTC
        self.node = Node(
            *(self._config, registry, Health(), SystemClock(), zone, directory),
            fail=self.fate.fail,
            ending=self.fate.ending,
            mode=self.mode,
        )
        offer(Node, self.node)

    def start(self, modules: ModuleHolder) -> None:
        own = cluster.Node(self._config.gRPCHost, self._config.gRPCPort, is_self=True)
        modules.find("cluster").service(cluster.Coordinator).register(own)

    def after_start(self) -> None:
        self.node.health.started()

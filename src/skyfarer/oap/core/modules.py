"""Modules, providers and services: how the OAP is put together.

    Module     a name and the types of the services it promises: storage promises a Reader
    Provider   one way to keep the promise, chosen by the selector in the file: storage.duckdb
    service    what another module asks for by type: modules.find("storage").service(Reader)

A provider lives through five steps, each done for all providers before the next begins, in an order
in which what a module requires comes before it:

    prepare      offer the services; the others exist, but nothing may be asked of them
    listen       take the ports, so that a taken one is told before anything costly has started;
                 services of required modules may be found, but do not work yet
    start        open files and processes; services of required modules may be used
    after_start  everything runs; open the doors to the outside world
    stop         in reverse order, every one is tried, whatever the others did

Where only what must be there beforehand is to be made (`core.modes`), `install` takes the place of
listen, start and after_start.

All of it runs in one thread. A provider sees only the modules that it requires: an unspoken
dependency would work by luck of the order.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.base.lifecycle import stop_all
from skyfarer.oap.core.capabilities import Capability

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Module:
    name: str
    services: tuple[type, ...] = ()


class Offer:
    """Given to `prepare`: takes the services of one provider, each promised type once."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._services: dict[type, object] = {}

    def __call__(self, kind: type[T], service: T) -> None:
        who = label(self._provider)
        if kind not in self._provider.module.services:
            raise PermanentError(f"{who} offers {kind.__name__}, which its module does not promise")
        if kind in self._services:
            raise PermanentError(f"{who} offers {kind.__name__} twice")
        self._services[kind] = service

    def complete(self) -> Mapping[type, object]:
        """All that was offered; PermanentError when something promised is missing."""
        for kind in self._provider.module.services:
            if kind not in self._services:
                raise PermanentError(f"{label(self._provider)} does not offer {kind.__name__}")
        return self._services


class Services:
    """The services of one running module."""

    def __init__(self, module: str, services: Mapping[type, object]) -> None:
        self._module = module
        self._services = services

    def service(self, kind: type[T]) -> T:
        if kind not in self._services:
            raise PermanentError(f"module '{self._module}' has no service {kind.__name__}")
        return cast(T, self._services[kind])


class ModuleHolder:
    """What one provider may reach: the modules it requires."""

    def __init__(self, provider: Provider, running: Mapping[str, Services]) -> None:
        self._provider = provider
        self._running = running

    def find(self, module: str) -> Services:
        if module not in self._provider.requires:
            raise PermanentError(f"{label(self._provider)} does not require module '{module}'")
        return self._running[module]


class Provider(Protocol):
    """Constructed with its bound configuration alone, without I/O. Inherit to get the empty steps.
    What it cannot do of what its module promises it `lacks`.

    `prepare`, `listen` and `start` may raise, which ends the boot; `stop` follows then too. `stop`
    drains within `timeout_s` and is safe twice, unprepared and unstarted.
    """

    name: str
    module: Module
    config: type[Any]
    requires: tuple[str, ...] = ()
    lacks: frozenset[Capability] = frozenset()

    def prepare(self, offer: Offer) -> None:
        return

    def install(self, modules: ModuleHolder) -> None:
        return

    def listen(self, modules: ModuleHolder) -> None:
        return

    def start(self, modules: ModuleHolder) -> None:
        return

    def after_start(self) -> None:
        return

    def stop(self, timeout_s: float) -> None:
        return


def label(provider: Provider) -> str:
    return f"provider '{provider.module.name}.{provider.name}'"


class Modules:
    """The chosen providers as one thing that starts and stops.

    `providers` stand in their start order (`boot.order`). A failure before the end of `start` stops
    all that was begun, with `stop_timeout_s` for it, and is raised as it came.
    """

    def __init__(self, providers: Sequence[Provider], stop_timeout_s: float = 30.0) -> None:
        self._providers = tuple(providers)
        self._stop_timeout_s = stop_timeout_s
        self._running: dict[str, Services] = {}
        self._begun: list[Provider] = []

    def start(self) -> None:
        try:
            self._prepare()
            for provider in self._providers:
                provider.listen(ModuleHolder(provider, self._running))
            for provider in self._providers:
                log.info("starting module=%s provider=%s", provider.module.name, provider.name)
                provider.start(ModuleHolder(provider, self._running))
            for provider in self._providers:
                provider.after_start()
        except BaseException:
            self.stop(self._stop_timeout_s)
            raise

    def install(self) -> None:
        """Makes what must be there before any node starts, and stops again."""
        try:
            self._prepare()
            for provider in self._providers:
                provider.install(ModuleHolder(provider, self._running))
        finally:
            self.stop(self._stop_timeout_s)

    def stop(self, timeout_s: float, clock: Clock | None = None) -> list[Exception]:
        """What the providers raised; each was tried. A second call finds nothing left to stop."""
        begun, self._begun = self._begun, []
        return stop_all(begun, timeout_s, clock)

    def _prepare(self) -> None:
        offers: list[tuple[Provider, Offer]] = []
        for provider in self._providers:
            self._begun.append(provider)
            offer = Offer(provider)
            provider.prepare(offer)
            offers.append((provider, offer))
        for provider, offer in offers:
            name = provider.module.name
            self._running[name] = Services(name, offer.complete())

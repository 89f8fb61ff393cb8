"""telemetry.prometheus: /metrics and /healthcheck of this node, on a loop and thread of its own."""

from __future__ import annotations

import asyncio
import threading

from skyfarer.oap.boot.listening import listen
from skyfarer.oap.boot.providers.analysis import Books
from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.settings import PrometheusConfig
from skyfarer.oap.core.modules import Module, ModuleHolder, Provider
from skyfarer.telemetry import table
from skyfarer.telemetry.http import TelemetryServer

TELEMETRY = Module("telemetry")
CALL_TIMEOUT_S = 10.0


class TelemetryProvider(Provider):
    name = "prometheus"
    module = TELEMETRY
    config = PrometheusConfig
    requires = ("core", "agent-analyzer")

    def __init__(self, config: PrometheusConfig) -> None:
        self._config = config
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: TelemetryServer | None = None

    def listen(self, modules: ModuleHolder) -> None:
        node, config = modules.find("core").service(Node), self._config
        listener = listen(config.host, config.port, "metrics", "SW_TELEMETRY_PROMETHEUS")
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="telemetry", daemon=True).start()
        self._server = TelemetryServer(
            config.host, config.port, node.registry, node.health, listener=listener
        )
        self._call(self._server.start())

    def start(self, modules: ModuleHolder) -> None:
        registry = modules.find("core").service(Node).registry
        books = modules.find("agent-analyzer").service(Books)
        registry.observe_with(table.QUEUE_DELIVERED, lambda: books.ledger().delivered)
        registry.observe_with(table.QUEUE_QUEUED, lambda: books.ledger().queued)
        registry.observe_split(table.QUEUE_DROPPED, lambda: books.ledger().dropped)

    def stop(self, timeout_s: float) -> None:
        if self._loop is None or self._server is None:
            return
        self._call(self._server.stop(timeout_s))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop = self._server = None

    def _call(self, work: object) -> None:
        assert self._loop is not None
        assert asyncio.iscoroutine(work)
        asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT_S)

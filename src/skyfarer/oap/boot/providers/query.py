"""query.graphql: the HTTP door that people, swctl and SkyWalking's UI ask.

It answers from `listen` on: 503 until the whole program has started."""

from __future__ import annotations

from skyfarer.oap.boot.listening import listen
from skyfarer.oap.boot.providers.analysis import Books
from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.settings import NoKeys
from skyfarer.oap.core.modules import Module, ModuleHolder, Provider
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query.server import QueryServer

QUERY = Module("query")


class QueryProvider(Provider):
    name = "graphql"
    module = QUERY
    config = NoKeys
    requires = ("core", "storage", "agent-analyzer")

    def __init__(self, config: NoKeys) -> None:
        self._config = config
        self._server: QueryServer | None = None

    def listen(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        self._server = QueryServer(
            listen(node.config.restHost, node.config.restPort, "queries", "SW_CORE_REST"),
            modules.find("storage").service(Reader),
            modules.find("agent-analyzer").service(Books).ledger,
            node.health,
            node.registry,
            node.clock,
            node.zone,
        )
        self._server.start()

    @property
    def port(self) -> int:
        return self._server.port if self._server else 0

    def stop(self, timeout_s: float) -> None:
        if self._server is not None:
            self._server.stop(timeout_s)

"""query.graphql: the HTTP door that people, swctl and SkyWalking's UI ask.

It answers from `listen` on: 503 until the whole program has started. What agents post here goes on
to the receiver, unless that has a port of its own."""

from __future__ import annotations

from skyfarer.oap.boot.listening import listen
from skyfarer.oap.boot.providers.analysis import Books
from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.providers.receivers import Posted
from skyfarer.oap.boot.providers.ttl import retention_of
from skyfarer.oap.boot.settings import CoreConfig, GraphQLConfig
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.expiry import RetentionOverride
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.modules import Module, ModuleHolder, Provider
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.tasks import TaskTables
from skyfarer.oap.core.templates import TemplateTables
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.query.dashboards import SavedDashboards
from skyfarer.oap.query.retention import DaysKept
from skyfarer.oap.query.server import QueryServer
from skyfarer.wire.tls import HTTP_1, ServerTls, ServerTlsSettings

QUERY = Module("query")


class QueryProvider(Provider):
    name = "graphql"
    module = QUERY
    config = GraphQLConfig
    requires = ("cluster", "core", "storage", "agent-analyzer", "receiver-sharing-server")

    def __init__(self, config: GraphQLConfig) -> None:
        self._config = config
        self._server: QueryServer | None = None

    def listen(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        analysis, storage = modules.find("agent-analyzer"), modules.find("storage")
        kept = retention_of(node, storage.service(RetentionOverride))
        tls = _tls(node.config)
        if tls is not None:
            tls.context()  # files that are no good are told before anything has started
        self._server = QueryServer(
            listen(node.config.restHost, node.config.restPort, "queries", "SW_CORE_REST"),
            storage.service(Reader),
            analysis.service(Books).ledger,
            node.health,
            node.registry,
            node.clock,
            node.zone,
            plan=analysis.service(Plan),
            inventories=storage.service(InventoryReader),
            retention=DaysKept(kept.record_days, kept.metrics_days),
            dashboards=SavedDashboards(
                storage.service(TemplateTables), self._config.enableUpdateUITemplate
            ),
            tasks=storage.service(TaskTables),
            configuration=node.effective,
            posts=modules.find("receiver-sharing-server").service(Posted).front,
            tls=tls.context if tls is not None else None,
            nodes=modules.find("cluster").service(Coordinator).nodes,
        )
        self._server.start()

    @property
    def port(self) -> int:
        return self._server.port if self._server else 0

    def stop(self, timeout_s: float) -> None:
        if self._server is not None:
            self._server.stop(timeout_s)


def _tls(core: CoreConfig) -> ServerTls | None:
    certificate, key = core.restSSLCertChainPath, core.restSSLKeyPath
    if not core.restSSLEnabled or certificate is None or key is None:
        return None
    return ServerTls(ServerTlsSettings(certificate.absolute(), key.absolute(), protocol=HTTP_1))

"""The query server: the HTTP door on an event loop in a thread of its own."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import tzinfo
from threading import Event, Thread
from typing import Any

import uvicorn

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.tasks import TaskTables
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.query import limits
from skyfarer.oap.query.dashboards import SavedDashboards
from skyfarer.oap.query.engine import Engine
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.http import Door, Look, Posts
from skyfarer.oap.query.pipeline import Pipeline, ledger_view
from skyfarer.oap.query.promql import Prometheus
from skyfarer.oap.query.protocol import ImpatientProtocol
from skyfarer.oap.query.registered import Registered
from skyfarer.oap.query.resolvers import Resolvers
from skyfarer.oap.query.retention import DaysKept
from skyfarer.oap.query.status import Status
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)

START_TIMEOUT_S = 60.0


class _Uvicorn(uvicorn.Server):
    """Says when it serves, instead of being asked. Takes its TLS as a context that is made: one of
    uvicorn's own would not follow its files."""

    def __init__(
        self, config: uvicorn.Config, serving: Event, tls: Callable[[], Any] | None
    ) -> None:
        super().__init__(config)
        self._serving = serving
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._tls is not None:
            self.config.ssl = self._tls()
        await super().startup(sockets)
        self._serving.set()


class QueryServer:
    """Answers on `listener`, a listening socket that is its own from now on, at `port`.

    `start` returns when requests are answered: with 503 until `health` has started, so it may come
    before storage. `stop` lets requests in flight end within its time and closes the port; it is
    safe twice and unstarted. `reader`, `ledger` and `inventories` (without which ids of the v2
    protocol stay unnamed) are called from several threads at once, `posts` on the server's event
    loop. `plan` has the metrics that can be asked for, `retention` the days that data is kept;
    without `dashboards` there are the shipped ones, and none can be saved; without `tasks` nobody
    profiles. `configuration` is what
    this node shows of its own, without secrets. `nodes` never blocks.
    `tls` makes an `ssl.SSLContext`, for HTTP/1.1; it is asked once.
    """

    def __init__(
        self,
        listener: socket.socket,
        reader: Reader,
        ledger: Callable[[], Ledger],
        health: Health,
        registry: Registry,
        clock: Clock,
        zone: tzinfo,
        *,
        plan: Plan,
        inventories: InventoryReader | None = None,
        retention: DaysKept | None = None,
        dashboards: SavedDashboards | None = None,
        tasks: TaskTables | None = None,
        configuration: Mapping[str, str] | None = None,
        posts: Posts | None = None,
        tls: Callable[[], Any] | None = None,
        nodes: Callable[[], Iterable[Node]] = tuple,
    ) -> None:
        self.host, self.port = listener.getsockname()[:2]
        self._listener = listener
        self._health = health
        kept = (inventories, retention, dashboards, tasks)
        resolvers = Resolvers(reader, plan, health, clock, zone, *kept)
        self._engine = Engine(resolvers, registry, clock)
        self._prometheus = Prometheus(reader, Catalogue(plan), clock, zone)
        self._posts = posts
        self._status = Status(retention or DaysKept(), configuration or {})
        pipeline = Pipeline(registry, ledger, clock, configuration or {})
        self._looks: dict[str, Look] = {
            "ledger": lambda _: ledger_view(ledger()),
            "pipeline": lambda _: pipeline.told(),
        }
        if inventories is not None:
            self._looks["registry"] = Registered(inventories).told
        self._tls = tls
        self._nodes = nodes
        self._workers: ThreadPoolExecutor | None = None
        self._server: _Uvicorn | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        self._workers = ThreadPoolExecutor(limits.WORKERS, "query")
        door = Door(
            *(self._engine, self._looks, self._health, self._workers),
            posts=self._posts,
            status=self._status,
            nodes=self._nodes,
            prometheus=self._prometheus,
        )
        serving = Event()
        self._server = _Uvicorn(_config(door), serving, self._tls)
        self._thread = Thread(
            target=self._server.run, args=([self._listener],), name="query-http", daemon=True
        )
        self._thread.start()
        if not serving.wait(START_TIMEOUT_S):
            self.stop(0)
            raise PermanentError(f"the query server did not start within {START_TIMEOUT_S:g} s")
        log.info("query server listens on %s:%s", self.host, self.port)

    def stop(self, timeout_s: float) -> None:
        if self._server is None or self._thread is None or self._workers is None:
            self._listener.close()
            return
        self._server.config.timeout_graceful_shutdown = max(1, int(timeout_s))
        self._server.should_exit = True
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._server.force_exit = True
            log.warning("query server left requests in flight after %g s", timeout_s)
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._listener.close()
        self._server = self._thread = self._workers = None


def _config(door: Door) -> uvicorn.Config:
    return uvicorn.Config(
        door.app(),
        http=ImpatientProtocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=limits.CONNECTIONS_MAX,
    )

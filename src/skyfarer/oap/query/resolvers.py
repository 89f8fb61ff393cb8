"""Root fields of the schema, one method each, from storage values to the protocol's shapes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo
from itertools import chain

from skyfarer import __version__
from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.tasks import TaskTables
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.query import unkept
from skyfarer.oap.query.browser_logs import BrowserLogs
from skyfarer.oap.query.dashboards import Dashboards, SavedDashboards
from skyfarer.oap.query.events import Events
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.logs import Logs
from skyfarer.oap.query.metadata import Metadata
from skyfarer.oap.query.metrics import Metrics
from skyfarer.oap.query.metrics_v1 import MetricsV1
from skyfarer.oap.query.metrics_v2 import MetricsV2
from skyfarer.oap.query.profiles import Profiles
from skyfarer.oap.query.retention import DaysKept
from skyfarer.oap.query.topology import Topologies
from skyfarer.oap.query.traces import Traces
from skyfarer.telemetry.health import Health

# The protocol this room speaks: swctl picks its documents by it (≥ 9 metadata v2, ≥ 10.2 endpoints
# by duration), so our own version comes second.
PROTOCOL_VERSION = "10.4.0"

View = dict[str, object]


class Resolvers:
    """Any thread; blocks on storage. Arguments arrive coerced and checked against the schema."""

    def __init__(
        self,
        reader: Reader,
        plan: Plan,
        health: Health,
        clock: Clock,
        zone: tzinfo,
        inventories: InventoryReader | None = None,
        retention: DaysKept | None = None,
        dashboards: SavedDashboards | None = None,
        tasks: TaskTables | None = None,
    ) -> None:
        self._health = health
        self._clock = clock
        self._zone = zone
        self._retention = retention or DaysKept()
        self._metadata = Metadata(reader)
        catalogue = Catalogue(plan)
        self._metrics = [
            protocol(reader, catalogue, zone) for protocol in (Metrics, MetricsV2, MetricsV1)
        ]
        self._dashboards = Dashboards(reader, dashboards or SavedDashboards(), clock)
        self._topologies = Topologies(reader)
        self._traces = Traces(reader, inventories)
        self._logs = Logs(reader)
        self._events = Events(reader)
        self._browser_logs = BrowserLogs(reader, zone)
        self._profiles = Profiles(reader, clock, zone, tasks, inventories)

    def table(self) -> dict[str, Callable[..., object]]:
        metrics = (protocol.table() for protocol in self._metrics)
        return {
            "version": self.version,
            "checkHealth": self.check_health,
            "getTimeInfo": self.time_info,
            "getRecordsTTL": self._retention.records,
            "getMetricsTTL": self._retention.metrics,
            **self._metadata.table(),
            **dict(chain.from_iterable(table.items() for table in metrics)),
            **self._dashboards.table(),
            **self._topologies.table(),
            **self._traces.table(),
            **self._logs.table(),
            **self._events.table(),
            **self._browser_logs.table(),
            **self._profiles.table(),
            **unkept.table(),
        }

    def changes(self) -> dict[str, Callable[..., object]]:
        return {
            "version": self.version,
            **self._dashboards.changes(),
            **self._profiles.changes(),
            **unkept.changes(),
        }

    def version(self) -> str:
        return f"{PROTOCOL_VERSION}-skyfarer-{__version__}"

    def check_health(self) -> View:
        return {"score": self._health.score(), "details": self._health.details()}

    def time_info(self) -> View:
        now_ms = self._clock.now_ms()
        offset = datetime.fromtimestamp(now_ms / 1000, self._zone).strftime("%z")
        return {"timezone": offset[:5], "currentTimestamp": now_ms}

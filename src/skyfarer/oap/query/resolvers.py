"""Root fields of the schema, one method each, from storage values to the protocol's shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from itertools import chain

from skyfarer import __version__
from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Endpoint, Instance, Reader, Service
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.events import Events
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.limits import ENDPOINTS_MAX
from skyfarer.oap.query.logs import Logs
from skyfarer.oap.query.metrics import Metrics
from skyfarer.oap.query.metrics_v1 import MetricsV1
from skyfarer.oap.query.metrics_v2 import MetricsV2
from skyfarer.oap.query.traces import Traces
from skyfarer.telemetry.health import Health

# The protocol this room speaks: swctl picks its documents by it (≥ 9 metadata v2, ≥ 10.2 endpoints
# by duration), so our own version comes second.
PROTOCOL_VERSION = "10.4.0"

_LANGUAGES = {
    "java": "JAVA",
    "dotnet": "DOTNET",
    ".net": "DOTNET",
    "nodejs": "NODEJS",
    "node.js": "NODEJS",
    "python": "PYTHON",
    "ruby": "RUBY",
    "go": "GO",
    "golang": "GO",
    "lua": "LUA",
    "php": "PHP",
}

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
    ) -> None:
        self._reader = reader
        self._health = health
        self._clock = clock
        self._zone = zone
        catalogue = Catalogue(plan)
        self._metrics = [
            protocol(reader, catalogue, zone) for protocol in (Metrics, MetricsV2, MetricsV1)
        ]
        self._traces = Traces(reader, inventories)
        self._logs = Logs(reader)
        self._events = Events(reader)

    def table(self) -> dict[str, Callable[..., object]]:
        metrics = (protocol.table() for protocol in self._metrics)
        return {
            "version": self.version,
            "checkHealth": self.check_health,
            "getTimeInfo": self.time_info,
            "listLayers": self.layers,
            "listServices": self.services,
            "listInstances": self.instances,
            "findEndpoint": self.endpoints,
            **dict(chain.from_iterable(table.items() for table in metrics)),
            **self._traces.table(),
            **self._logs.table(),
            **self._events.table(),
        }

    def version(self) -> str:
        return f"{PROTOCOL_VERSION}-skyfarer-{__version__}"

    def check_health(self) -> View:
        return {"score": self._health.score(), "details": self._health.details()}

    def time_info(self) -> View:
        now_ms = self._clock.now_ms()
        offset = datetime.fromtimestamp(now_ms / 1000, self._zone).strftime("%z")
        return {"timezone": offset[:5], "currentTimestamp": now_ms}

    def layers(self) -> list[str]:
        return [layer.name for layer in Layer if layer is not Layer.UNDEFINED]

    def services(self, layer: str | None = None) -> list[View]:
        return [_service(service) for service in self._reader.services(layer or None)]

    def instances(self, duration: Mapping[str, str], serviceId: str) -> list[View]:  # noqa: N803
        span = Duration.of(duration)
        found = self._reader.instances(serviceId, span.start_minute, span.end_minute)
        return [_instance(instance) for instance in found]

    def endpoints(
        self,
        serviceId: str,  # noqa: N803
        limit: int,
        keyword: str | None = None,
        duration: Mapping[str, str] | None = None,
    ) -> list[View]:
        span = Duration.of(duration) if duration is not None else None
        if limit < 1:
            return []
        between = (span.start_minute, span.end_minute) if span else None
        found = self._reader.endpoints(serviceId, keyword or "", min(limit, ENDPOINTS_MAX), between)
        return [_endpoint(endpoint) for endpoint in found]


def _service(service: Service) -> View:
    return {
        "id": service.id,
        "name": service.name,
        "group": service.group,
        "shortName": service.short_name,
        "layers": service.layers,
        "normal": service.normal,
    }


def _instance(instance: Instance) -> View:
    return {
        "id": instance.id,
        "name": instance.name,
        "attributes": [{"name": name, "value": value} for name, value in instance.attributes],
        "language": _LANGUAGES.get(instance.language.lower(), "UNKNOWN"),
        "instanceUUID": instance.id,
    }


def _endpoint(endpoint: Endpoint) -> View:
    return {"id": endpoint.id, "name": endpoint.name}

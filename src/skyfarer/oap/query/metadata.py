"""The root fields that say who is there: services, instances, endpoints, by id, name or keyword.

Older clients ask by other names for the same; their durations of services are accepted and ignored,
as the original does. Processes are not kept.
"""

# ruff: noqa: N803  (the protocol's own spelling)

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skyfarer.oap.core import ids
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Endpoint, Instance, Reader, Service
from skyfarer.oap.query import conditions
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.limits import ENDPOINTS_MAX
from skyfarer.oap.query.naming import service_name, service_of

View = dict[str, object]
Argument = Mapping[str, Any]

_ALWAYS: Final = (0, 9999_12_31_23_59)
_LANGUAGES: Final = {
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


class Metadata:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "listLayers": self.layers,
            "listServices": self.services,
            "getService": self.service,
            "findService": self.named_service,
            "listInstances": self.instances,
            "listInstancesByName": self.instances_by_name,
            "getInstance": self.instance,
            "findEndpoint": self.endpoints,
            "findEndpointByName": self.endpoints_by_name,
            "getEndpointInfo": self.endpoint,
            "listProcesses": lambda **_: [],
            "getProcess": lambda **_: None,
            "estimateProcessScale": lambda **_: 0,
            **self._older(),
        }

    def _older(self) -> dict[str, Callable[..., object]]:
        browser = Layer.BROWSER.name
        return {
            "getAllServices": self.all_services,
            "searchServices": self.search_services,
            "searchService": self.service_of_code,
            "getAllBrowserServices": lambda duration: self.services(browser),
            "searchBrowserServices": lambda duration, keyword: self._search(browser, keyword),
            "searchBrowserService": self.service_of_code,
            "getServiceInstances": self.instances,
            "searchEndpoint": self.endpoints,
            "getAllDatabases": self.databases,
        }

    def layers(self) -> list[str]:
        return [layer.name for layer in Layer if layer is not Layer.UNDEFINED]

    def services(self, layer: str | None = None) -> list[View]:
        return [_service(service) for service in self._reader.services(layer or None)]

    def service(self, serviceId: str) -> View | None:
        found = self._reader.services(None, [serviceId])
        return _service(found[0]) if found else None

    def named_service(self, serviceName: str) -> View | None:
        return self.service(ids.service_id(serviceName))

    def service_of_code(self, serviceCode: str) -> View | None:
        return self.named_service(serviceCode)

    def all_services(self, duration: Argument, group: str | None = None) -> list[View]:
        return [one for one in self.services() if not group or one["group"] == group]

    def search_services(self, duration: Argument, keyword: str) -> list[View]:
        return self._search(None, keyword)

    def _search(self, layer: str | None, keyword: str) -> list[View]:
        found = self._reader.services(layer)
        return [_service(service) for service in found if keyword in service.name]

    def databases(self, duration: Argument) -> list[View]:
        found = self._reader.services(Layer.VIRTUAL_DATABASE.name)
        return [{"id": one.id, "name": one.name, "type": ""} for one in found]

    def instances(self, duration: Argument, serviceId: str) -> list[View]:
        span = Duration.of(duration)
        found = self._reader.instances(serviceId, span.start_minute, span.end_minute)
        return [_instance(instance) for instance in found]

    def instances_by_name(self, duration: Argument, service: Argument) -> list[View]:
        return self.instances(duration, conditions.service_id(service))

    def instance(self, instanceId: str) -> View | None:
        found = self._reader.instances(service_of(instanceId), *_ALWAYS)
        return next((_instance(one) for one in found if one.id == instanceId), None)

    def endpoints(
        self,
        serviceId: str,
        limit: int,
        keyword: str | None = None,
        duration: Argument | None = None,
    ) -> list[View]:
        span = Duration.of(duration) if duration is not None else None
        if limit < 1:
            return []
        between = (span.start_minute, span.end_minute) if span else None
        found = self._reader.endpoints(serviceId, keyword or "", min(limit, ENDPOINTS_MAX), between)
        return [_endpoint(endpoint) for endpoint in found]

    def endpoints_by_name(
        self,
        service: Argument,
        limit: int,
        keyword: str | None = None,
        duration: Argument | None = None,
    ) -> list[View]:
        return self.endpoints(conditions.service_id(service), limit, keyword, duration)

    def endpoint(self, endpointId: str) -> View | None:
        """What the id says; nobody looks whether it was ever called."""
        try:
            service_id, name = ids.decode_part_id(endpointId)
        except ValueError:
            return None
        of = {"serviceId": service_id, "serviceName": service_name(service_id)}
        return {"id": endpointId, "name": name, **of}


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

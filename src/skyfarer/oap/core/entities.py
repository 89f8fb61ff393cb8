"""What the metric rows of each source speak of: which names make the id of their entity.

Every row that analysis emits has the same columns, `ENTITY_COLUMNS`; those that its source has no
use for are empty. `service`, `instance` and `endpoint` are the entity itself, for a relation
its destination; the `from_` columns are the origin of a relation. `layer` and `from_layer` are
numbers of `core.layers.Layer`: they say whether a service is a real one in its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Final

ENTITY_COLUMNS: Final = (
    *("service", "layer", "instance", "endpoint"),
    *("from_service", "from_layer", "from_instance", "from_endpoint"),
    *("component", "detect_point"),
)
"""Text, but for the layers and the component, 32-bit numbers. `component` and `detect_point` (the
name of a DetectPoint) are of relations alone: 0 and empty elsewhere. They are no part of an id."""


class DetectPoint(StrEnum):
    """At which end of a call it was seen."""

    SERVER = "SERVER"
    CLIENT = "CLIENT"
    PROXY = "PROXY"
    UNRECOGNIZED = "UNRECOGNIZED"


class Entity(Enum):
    SERVICE = "service"
    INSTANCE = "instance"
    ENDPOINT = "endpoint"
    SERVICE_RELATION = "service_relation"
    INSTANCE_RELATION = "instance_relation"
    ENDPOINT_RELATION = "endpoint_relation"


TRACED: Final[Mapping[str, Entity]] = {
    "Service": Entity.SERVICE,
    "ServiceInstance": Entity.INSTANCE,
    "Endpoint": Entity.ENDPOINT,
    "ServiceRelation": Entity.SERVICE_RELATION,
    "ServiceInstanceRelation": Entity.INSTANCE_RELATION,
    "EndpointRelation": Entity.ENDPOINT_RELATION,
    "DatabaseAccess": Entity.SERVICE,
    "CacheAccess": Entity.SERVICE,
    "MQAccess": Entity.SERVICE,
    "MQEndpointAccess": Entity.ENDPOINT,
}
"""What traces say: source → the kind of its entity."""

GEN_AI: Final[Mapping[str, Entity]] = {
    "GenAIProviderAccess": Entity.SERVICE,
    "GenAIModelAccess": Entity.INSTANCE,
}
"""What traces say of generative AI. Most batches have no such span, so it is asked apart."""

REPORTED: Final[Mapping[str, Entity]] = {
    "ServiceInstanceJVMCPU": Entity.INSTANCE,
    "ServiceInstanceJVMMemory": Entity.INSTANCE,
    "ServiceInstanceJVMMemoryPool": Entity.INSTANCE,
    "ServiceInstanceJVMGC": Entity.INSTANCE,
    "ServiceInstanceJVMThread": Entity.INSTANCE,
    "ServiceInstanceJVMClass": Entity.INSTANCE,
    "ServiceInstanceCLRCPU": Entity.INSTANCE,
    "ServiceInstanceCLRGC": Entity.INSTANCE,
    "ServiceInstanceCLRThread": Entity.INSTANCE,
    "InstanceMeter": Entity.INSTANCE,
    "InstanceHistogram": Entity.INSTANCE,
    "ServiceMeter": Entity.SERVICE,
    "TCPService": Entity.SERVICE,
    "TCPServiceInstance": Entity.INSTANCE,
    "TCPServiceRelation": Entity.SERVICE_RELATION,
    "TCPServiceInstanceRelation": Entity.INSTANCE_RELATION,
    "BrowserAppTraffic": Entity.SERVICE,
    "BrowserAppSingleVersionTraffic": Entity.INSTANCE,
    "BrowserAppPageTraffic": Entity.ENDPOINT,
    "BrowserAppPagePerf": Entity.ENDPOINT,
    "BrowserAppResourcePerf": Entity.ENDPOINT,
    "BrowserAppWebVitalsPerf": Entity.ENDPOINT,
    "BrowserAppWebInteractionPerf": Entity.ENDPOINT,
}
"""What agents report of themselves, and proxies of what went through them. Of a browser the version
is the instance, the page the endpoint."""

MESHED: Final = (
    *("Service", "ServiceInstance", "Endpoint", "ServiceRelation", "ServiceInstanceRelation"),
)
"""What traces say and the proxies of a mesh as well."""

ENTITIES: Final[Mapping[str, Entity]] = {**TRACED, **GEN_AI, **REPORTED}

SERVICE_META: Final = "ServiceMeta"
INSTANCE_META: Final = "ServiceInstanceUpdate"
ENDPOINT_META: Final = "EndpointMeta"
ADDRESS_ALIAS: Final = "NetworkAddressAliasSetup"
"""Sources without metrics: a service, an instance or an endpoint that exists, and an address (in
`endpoint`) that stands for `service` and `instance`."""

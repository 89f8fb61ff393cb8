"""The attributes that metrics name, as expressions over the columns of the emitted rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.ids import BLANK
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.oal.plan import Field
from skyfarer.oap.pipeline.analysis.traffic.texts import nonblank
from skyfarer.oap.pipeline.analysis.traffic.wanted import ENDS, Wanted

_CALL = {
    "latency": "latency",
    "status": "status",
    "httpResponseStatusCode": "http_code",
    "rpcStatusCode": "rpc_code",
    "type": "type",
}
_DETECTED = {"componentId": "component", "detectPoint": "detect_point"}
_RELATION = {
    **_CALL,
    **_DETECTED,
    "sourceServiceName": "from_service",
    "destServiceName": "service",
}
_ACCESS = {
    "name": "service",
    "latency": "latency",
    "transmissionLatency": "transmission_latency",
    "status": "status",
    "operation": "operation",
}
_COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "Service": {**_CALL, "name": "service", "tags": "tags"},
    "ServiceInstance": {**_CALL, "name": "instance", "serviceName": "service", "tags": "tags"},
    "Endpoint": {**_CALL, "name": "endpoint", "serviceName": "service", "tags": "tags"},
    "ServiceRelation": _RELATION,
    "ServiceInstanceRelation": {
        **_RELATION,
        "sourceServiceInstanceName": "from_instance",
        "destServiceInstanceName": "instance",
    },
    "EndpointRelation": {
        **_CALL,
        **_DETECTED,
        "rpcLatency": "latency",
        "endpoint": "from_endpoint",
        "serviceName": "from_service",
        "childEndpoint": "endpoint",
        "childServiceName": "service",
    },
    "DatabaseAccess": _ACCESS,
    "CacheAccess": _ACCESS,
    "MQAccess": _ACCESS,
    "MQEndpointAccess": {
        **_ACCESS,
        "name": "endpoint",
        "serviceName": "service",
        "endpoint": "endpoint",
    },
}
_LAYERS: Final = {
    "layer": "layer",
    "sourceLayer": "from_layer",
    "destLayer": "layer",
}
_IDS: Final = {
    "serviceId": ("service", "layer"),
    "sourceServiceId": ("from_service", "from_layer"),
    "destServiceId": ("service", "layer"),
}


def attribute(wanted: Wanted) -> Callable[[str, Field], Column | None]:
    """(source, field) → its value in an emitted row of that source, before `Field.cast`.

    None for what no span says. KeyError for what was not `wanted`.
    """

    def value(source: str, field: Field) -> Column | None:
        if field.key is not None:
            return F.col(f"tag_{_known(field, source, wanted.tag_keys)}")
        if (source, field.path) in ENDS and wanted.ends:
            return F.col(ENDS[source, field.path])
        if field.path == "tags" and wanted.tags:
            return F.col("tags")
        if field.path == "tags" or (source, field.path) in ENDS:
            raise KeyError(f"{source}.{field} was not wanted: ask wanted_by(plan) for its columns")
        return _value(source, field)

    return value


def _value(source: str, field: Field) -> Column | None:
    if field.path in _COLUMNS.get(source, {}):
        return F.col(_COLUMNS[source][field.path])
    return layer_or_id(field)


def layer_or_id(field: Field) -> Column | None:
    """What every emitted row says by its entity alone."""
    if field.path in _LAYERS:
        return layer_name(F.col(_LAYERS[field.path]))
    if field.path in _IDS:
        service, layer = _IDS[field.path]
        return service_id(F.col(service), F.col(layer))
    return None


def layer_name(layer: Column) -> Column:
    return F.get(F.array(*(F.lit(one.name) for one in Layer)), layer)


def service_id(name: Column, layer: Column) -> Column:
    """As `core.ids.service_id`. Spark breaks base64 into lines of 76 characters."""
    named = F.coalesce(nonblank(name), F.lit(BLANK))
    encoded = F.translate(F.base64(named.cast("binary")), "\r\n", "")
    conjectured = layer.isin([int(one) for one in Layer if not one.normal])
    return F.concat(encoded, F.when(conjectured, ".0").otherwise(".1"))


def _known(field: Field, source: str, keys: tuple[str, ...]) -> int:
    if field.path != "tag" or field.key not in keys:
        raise KeyError(f"{source}.{field} was not wanted: ask wanted_by(plan) for its columns")
    return keys.index(field.key)

"""A row, the id of its entity, and how the metrics language calls what is in it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from skyfarer.oap.core.entities import ENTITIES, ENTITY_COLUMNS, Entity
from skyfarer.oap.core.layers import Layer
from skyfarer.testing.plain_analysis import spans
from skyfarer.wire.messages import SpanObject

Row: TypeAlias = dict[str, Any]

_EMPTY: Final[Mapping[str, Any]] = {
    **dict.fromkeys(ENTITY_COLUMNS, ""),
    **dict.fromkeys(("layer", "from_layer", "component"), 0),
    "latency": 0,
    "status": False,
    "http_code": 0,
    "rpc_code": None,
    "type": None,
    "operation": None,
    "transmission_latency": 0,
    **dict.fromkeys(("input_tokens", "output_tokens", "cost", "first_token"), 0),
    "source_instance": None,
    "dest_instance": None,
    "dest_endpoint": None,
}


def row(source: str, span: SpanObject, **columns: object) -> Row:
    """What is not given is empty."""
    return {
        **_EMPTY,
        "source": source,
        "minute": spans.minute(span),
        "tag": {},
        "tags": [],
        **{name: int(one) if isinstance(one, Layer) else one for name, one in columns.items()},
    }


def entity_id(one: Row) -> str:
    """Of a row of a source that has metrics."""
    own, origin = _service_id(one, ""), _service_id(one, "from_")
    entity = ENTITIES[one["source"]]
    if entity is Entity.SERVICE:
        return own
    if entity is Entity.INSTANCE:
        return f"{own}_{encoded(one['instance'])}"
    if entity is Entity.ENDPOINT:
        return f"{own}_{encoded(one['endpoint'])}"
    if entity is Entity.SERVICE_RELATION:
        return f"{origin}-{own}"
    if entity is Entity.INSTANCE_RELATION:
        return f"{origin}_{encoded(one['from_instance'])}-{own}_{encoded(one['instance'])}"
    return f"{origin}-{encoded(one['from_endpoint'])}-{own}-{encoded(one['endpoint'])}"


def oal_row(one: Row) -> dict[str, object]:
    """The row under the names of its source's attributes."""
    return {**_ATTRIBUTES[ENTITIES[one["source"]]](one), **_call(one)}


def _service_id(one: Row, end: str) -> str:
    layer = Layer(one[f"{end}layer"])
    return f"{encoded(one[f'{end}service'])}.{int(layer.normal)}"


def encoded(name: str) -> str:
    text = "_blank" if spans.blank(name) else name
    return base64.b64encode(text.encode()).decode()


def _call(one: Row) -> dict[str, object]:
    return {
        "latency": one["latency"],
        "rpcLatency": one["latency"],
        "transmissionLatency": one["transmission_latency"],
        "status": one["status"],
        "httpResponseStatusCode": one["http_code"],
        "rpcStatusCode": one["rpc_code"],
        "type": one["type"],
        "operation": one["operation"],
        "inputTokens": one["input_tokens"],
        "outputTokens": one["output_tokens"],
        "totalEstimatedCost": one["cost"],
        "timeToFirstToken": one["first_token"],
        "tag": one["tag"],
        "tags": one["tags"],
    }


def _service(one: Row) -> dict[str, object]:
    return {
        "name": one["service"],
        "layer": Layer(one["layer"]).name,
        "serviceInstanceName": one["dest_instance"],
        "endpointName": one["dest_endpoint"],
    }


def _part(name: str) -> Any:
    """Of an instance or an endpoint: a part of its service."""
    return lambda one: {
        **_service(one),
        "name": one[name],
        "endpoint": one["endpoint"],
        "serviceName": one["service"],
        "serviceId": _service_id(one, ""),
    }


def _relation(one: Row) -> dict[str, object]:
    return {
        "sourceServiceId": _service_id(one, "from_"),
        "sourceServiceName": one["from_service"],
        "sourceServiceInstanceName": one["source_instance"],
        "sourceLayer": Layer(one["from_layer"]).name,
        "destServiceId": _service_id(one, ""),
        "destServiceName": one["service"],
        "destServiceInstanceName": one["dest_instance"],
        "destLayer": Layer(one["layer"]).name,
        "endpoint": one["dest_endpoint"],
        "componentId": one["component"],
        "detectPoint": one["detect_point"],
    }


def _endpoint_relation(one: Row) -> dict[str, object]:
    return {
        "endpoint": one["from_endpoint"],
        "serviceName": one["from_service"],
        "serviceInstanceName": one["source_instance"],
        "childEndpoint": one["endpoint"],
        "childServiceName": one["service"],
        "childServiceInstanceName": one["dest_instance"],
        "componentId": one["component"],
        "detectPoint": one["detect_point"],
    }


_ATTRIBUTES: Final = {
    Entity.SERVICE: _service,
    Entity.INSTANCE: _part("instance"),
    Entity.ENDPOINT: _part("endpoint"),
    Entity.SERVICE_RELATION: _relation,
    Entity.INSTANCE_RELATION: _relation,
    Entity.ENDPOINT_RELATION: _endpoint_relation,
}

"""Rows as trace analysis emits them, at random, in the form of Spark and of the interpreter."""

from __future__ import annotations

from random import Random
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.entities import TRACED
from skyfarer.oap.oal.plan import Field
from skyfarer.oap.oal.sources import SOURCES

Emitted: TypeAlias = dict[str, object]
TAG_KEYS: Final = ("transmission.latency", "x")
TEXT, INT, LONG = pa.string(), pa.int32(), pa.int64()
SCHEMA: Final = pa.schema(
    [
        *(("source", TEXT), ("minute", LONG), ("service", TEXT), ("layer", INT)),
        *(("instance", TEXT), ("endpoint", TEXT), ("from_service", TEXT), ("from_layer", INT)),
        *(("from_instance", TEXT), ("from_endpoint", TEXT), ("component", INT)),
        *(("detect_point", TEXT), ("latency", INT), ("status", pa.bool_()), ("http_code", INT)),
        *(("rpc_code", TEXT), ("type", TEXT), ("operation", TEXT), ("transmission_latency", LONG)),
        *(("tags", pa.list_(TEXT)), ("tag_0", TEXT), ("tag_1", TEXT)),
    ]
)
_HELD: Final = {
    "rpcLatency": "latency",
    "transmissionLatency": "transmission_latency",
    "httpResponseStatusCode": "http_code",
    "rpcStatusCode": "rpc_code",
    "detectPoint": "detect_point",
    "componentId": "component",
    "serviceName": "service",
    "destServiceName": "service",
}
_NAMES: Final = {
    "ServiceInstance": "instance",
    "Endpoint": "endpoint",
    "MQEndpointAccess": "endpoint",
}
_LATENCIES: Final = (0, 1, 9, 10, 99, 100, 101, 250, 400, 401, 1200, 1201, -1, -19, 2**31 - 1, None)
_NUMBERS: Final = (
    *("0", "7", "-12", "+30", "-0", "007", "2147483647", "2147483648", "-2147483648"),
    *("", " 7", "7 ", "7\n", "1.5", "1e3", "0x1", "x", "-", "+", "--1", "٣", "9" * 19, "9" * 41),
    *("0" * 39 + "5", "0" * 40 + "5", "1_000", None),
)


def held_by(source: str, path: str) -> str | None:
    """The column of an attribute; None for one that traces never fill."""
    if path == "name":
        return _NAMES.get(source, "service")
    found = _HELD.get(path, path)
    return found if found in SCHEMA.names and found not in ("layer", "endpoint") else None


def attribute(source: str, field: Field) -> Column | None:
    if field.key is not None:
        return F.col(f"tag_{TAG_KEYS.index(field.key)}")
    column = held_by(source, field.path)
    return None if column is None else F.col(column)


def oal_row(row: Emitted) -> dict[str, object]:
    """As the interpreter reads it."""
    source = str(row["source"])
    columns = {path: held_by(source, path) for path in SOURCES[source].attributes}
    told = {path: row[column] for path, column in columns.items() if column is not None}
    tags = {key: row[f"tag_{n}"] for n, key in enumerate(TAG_KEYS)}
    return told | {"tag": {key: text for key, text in tags.items() if text is not None}}


def random_row(random: Random) -> Emitted:
    """Few entities, so that many rows meet in one."""
    source = random.choice([*TRACED])
    relation = source.endswith("Relation")
    return {
        "source": source,
        "minute": random.choice((29_000_000, 29_000_001)),
        "service": random.choice(("a", "b", "ü")),
        "layer": random.choice((2, 18)),
        "instance": "i" if "Instance" in source else "",
        "endpoint": random.choice(("/a", "/ab", "b/")) if "Endpoint" in source else "",
        "from_service": "user" if relation else "",
        "from_layer": 0,
        "from_instance": "",
        "from_endpoint": "",
        "component": random.choice((0, 5)) if relation else 0,
        "detect_point": random.choice(("SERVER", "CLIENT", "PROXY")) if relation else "",
        "latency": random.choice(_LATENCIES),
        "status": random.choice((True, True, False, None)),
        "http_code": random.choice((0, 200, 404, None)),
        "rpc_code": random.choice(("OK", "NOT_FOUND", "", None)),
        "type": random.choice(("MQ", "MQ", "HTTP", None)),
        "operation": random.choice(("Read", "Write", "Consume", "Produce", None)),
        "transmission_latency": random.choice((0, 15, -15, 2**40)),
        "tags": random.choice((None, [], ["k:v"], ["k:w", "k:v"], [None])),
        "tag_0": random.choice(_NUMBERS),
        "tag_1": random.choice(_NUMBERS),
    }

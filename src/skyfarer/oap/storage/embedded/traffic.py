"""What there is: services, instances and endpoints, from the rows that speak of them.

service_traffic   a row a name and layer, keyed by the layer's number; time_bucket is its first sign
instance_traffic  a row an instance; time_bucket and last_ping are its first and last sign
endpoint_traffic  a row an endpoint, the same; one merely heard of has last_ping 0

Names without a letter share one id: of those in a batch one row is made, or a sign would be lost.
"""

from __future__ import annotations

from typing import Final

import duckdb
import pyarrow as pa

from skyfarer.oap.core.entities import ENDPOINT_META, INSTANCE_META, SERVICE_META
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.storage.entities import endpoints, instances, names, services
from skyfarer.oap.storage.merging import Numbers

_SERVICE_SOURCES: Final = (
    *("Service", "BrowserAppTraffic", "ServiceMeter", "GenAIProviderAccess", SERVICE_META),
)
_INSTANCE_SOURCES: Final = (
    *("ServiceInstance", "BrowserAppSingleVersionTraffic", "GenAIModelAccess", INSTANCE_META),
)
_ENDPOINT_SOURCES: Final = ("Endpoint", "BrowserAppPageTraffic", ENDPOINT_META)
SOURCES: Final = frozenset((*_SERVICE_SOURCES, *_INSTANCE_SOURCES, *_ENDPOINT_SOURCES))
_NAMES: Final = ", ".join(f"{layer.value}: '{layer.name}'" for layer in Layer)
_SERVICES: Final = f"""INSERT INTO service_traffic
    SELECT part || '.' || layer, min(service_id), min(name),
        coalesce(MAP {{{_NAMES}}}[layer], '{Layer.UNDEFINED.name}'), min(bucket)
    FROM heard GROUP BY ALL
    ON CONFLICT DO UPDATE SET time_bucket = excluded.time_bucket
    WHERE time_bucket > excluded.time_bucket"""
_PARTS: Final = """INSERT INTO {kind}_traffic BY NAME
    SELECT id, min(service_id) AS service_id, min(name) AS name, min(bucket) AS time_bucket,
        {last_ping} AS last_ping
    FROM heard WHERE name <> '' GROUP BY ALL
    ON CONFLICT DO UPDATE SET last_ping = greatest(last_ping, excluded.last_ping),
        time_bucket = least(time_bucket, excluded.time_bucket)
    WHERE last_ping < excluded.last_ping OR time_bucket > excluded.time_bucket"""
_INSTANCES: Final = _PARTS.format(kind="instance", last_ping="max(bucket)")
_ENDPOINTS: Final = _PARTS.format(kind="endpoint", last_ping="max(bucket)")
_ENDPOINTS_HEARD_OF: Final = _PARTS.format(kind="endpoint", last_ping="0")


def store(cursor: duckdb.DuckDBPyConnection, source: str, rows: pa.Table, buckets: Numbers) -> None:
    """Inside the caller's transaction; `buckets` are the minutes of the rows."""
    columns = {"bucket": pa.array(buckets), "service_id": services(rows)}
    if source in _SERVICE_SOURCES:
        columns |= {"part": names(rows, "service"), "layer": rows["layer"], "name": rows["service"]}
        statement = _SERVICES
    elif source in _INSTANCE_SOURCES:
        columns |= {"id": instances(rows), "name": rows["instance"]}
        statement = _INSTANCES
    elif source in _ENDPOINT_SOURCES:
        columns |= {"id": endpoints(rows), "name": rows["endpoint"]}
        statement = _ENDPOINTS_HEARD_OF if source == ENDPOINT_META else _ENDPOINTS
    else:
        return
    cursor.register("heard", pa.table(columns))
    cursor.execute(statement)

"""What there is: services, instances and endpoints, from the rows that speak of them.

service_traffic   a row a name and layer, keyed by the layer's number
instance_traffic  a row an instance; time_bucket and last_ping are its first and last sign
endpoint_traffic  a row an endpoint, the same; one merely heard of has last_ping 0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb

from skyfarer.oap.core.entities import ENDPOINT_META, SERVICE_META
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.storage.embedded.entities import ENDPOINT_ID, INSTANCE_ID, SERVICE_ID, named

_NAMES: Final = ", ".join(f"{layer.value}: '{layer.name}'" for layer in Layer)
_LAYER: Final = f"coalesce(MAP {{{_NAMES}}}[layer], '{Layer.UNDEFINED.name}')"

_SERVICES: Final = f"""INSERT OR IGNORE INTO service_traffic
    SELECT {named("service")} || '.' || layer, {SERVICE_ID}, service, {_LAYER}, min(bucket)
    FROM incoming GROUP BY ALL"""


def _parts(kind: str, part_id: str, last_ping: str, more: str = "") -> str:
    return f"""INSERT INTO {kind}_traffic
    SELECT {part_id}, {SERVICE_ID}, {kind}, min(bucket), {last_ping}{more}
    FROM incoming WHERE {kind} <> '' GROUP BY ALL
    ON CONFLICT DO UPDATE SET last_ping = greatest(last_ping, excluded.last_ping),
        time_bucket = least(time_bucket, excluded.time_bucket)
    WHERE last_ping < excluded.last_ping OR time_bucket > excluded.time_bucket"""


_STATEMENTS: Final[Mapping[str, str]] = {
    "Service": _SERVICES,
    SERVICE_META: _SERVICES,
    "ServiceInstance": _parts("instance", INSTANCE_ID, "max(bucket)", ", NULL"),
    "Endpoint": _parts("endpoint", ENDPOINT_ID, "max(bucket)"),
    ENDPOINT_META: _parts("endpoint", ENDPOINT_ID, "0"),
}


def store(cursor: duckdb.DuckDBPyConnection, source: str) -> None:
    """Of the rows `incoming`, with their `bucket`, inside the caller's transaction."""
    if statement := _STATEMENTS.get(source):
        cursor.execute(statement)

"""How a node is written down in ZooKeeper: as the original's service discovery does.

    /skywalking[/<namespace>]/remote/<random id>    an ephemeral node whose data is
    {"name": "remote", "id": "<random id>", "address": "10.0.0.1", "port": 11800,
     "payload": {"address": {"host": "10.0.0.1", "port": 11800, "isSelf": true}},
     "registrationTimeUTC": 1763208000000, "serviceType": "DYNAMIC", "enabled": true}

Only `payload` is read back, as the original does. `isSelf` says nothing to a reader.
"""

from __future__ import annotations

import json
from typing import Final

from skyfarer.oap.core.cluster import Node

SERVICE: Final = "remote"
PORT_MAX: Final = 65_535


def service_path(namespace: str) -> str:
    """Of the node that all registrations are below."""
    parts = ["skywalking", *filter(None, namespace.split("/")), SERVICE]
    return "/" + "/".join(parts)


def written(node: Node, instance_id: str, now_ms: int) -> bytes:
    address = {"host": node.host, "port": node.port, "isSelf": True}
    return json.dumps(
        {
            "name": SERVICE,
            "id": instance_id,
            "address": node.host,
            "port": node.port,
            "payload": {"address": address},
            "registrationTimeUTC": now_ms,
            "serviceType": "DYNAMIC",
            "enabled": True,
        }
    ).encode()


def read(data: bytes) -> Node | None:
    """None when it is not one: others may write there."""
    try:
        address = json.loads(data)["payload"]["address"]
        host, port = address["host"], address["port"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if not isinstance(host, str) or type(port) is not int:
        return None
    return Node(host, port) if host and 0 < port <= PORT_MAX else None

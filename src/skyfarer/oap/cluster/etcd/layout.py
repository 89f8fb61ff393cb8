"""How a node is written down in etcd: as the original does.

<namespace>/<serviceName>/<host>_<random>   →   {"serviceName": "SkyWalking_OAP_Cluster/",
                                                 "host": "10.0.0.1", "port": 11800}
"""

from __future__ import annotations

import json
from secrets import token_hex
from typing import Final

from skyfarer.oap.core.cluster import Node

PORT_MAX: Final = 65_535


def prefix(namespace: str, service_name: str) -> bytes:
    """What all keys of a cluster begin with."""
    return f"{_folder(namespace) if namespace else ''}{_folder(service_name)}".encode()


def after(prefix: bytes) -> bytes:
    """The first key behind all that begin so; a prefix ends with a slash."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def key(prefix: bytes, node: Node) -> bytes:
    """Random at its end: two nodes that were given one address by mistake are two."""
    return prefix + f"{node.host}_{token_hex(8)}".encode()


def written(node: Node, service_name: str) -> bytes:
    return json.dumps(
        {"serviceName": _folder(service_name), "host": node.host, "port": node.port}
    ).encode()


def read(value: bytes) -> Node | None:
    """None when it is not one: others may write there."""
    try:
        found = json.loads(value)
        host, port = found["host"], found["port"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if not isinstance(host, str) or type(port) is not int:
        return None
    return Node(host, port) if host and 0 < port <= PORT_MAX else None


def _folder(name: str) -> str:
    return name if name.endswith("/") else name + "/"

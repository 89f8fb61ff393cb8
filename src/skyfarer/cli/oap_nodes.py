"""`skyfarer oap nodes`: who is in the cluster, as one of its nodes knows it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Final

from skyfarer.base.errors import RetryableError
from skyfarer.cli.columns import columns

TIMEOUT_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 1 << 20
_HEADS: Final = ("node", "self", "keeps the ttl")


def listed(url: str, as_json: bool) -> int:
    nodes = fetch(f"{url.rstrip('/')}/status/cluster/nodes")
    if as_json:
        for node in nodes:
            print(json.dumps(node))
        return 0
    print("\n".join(columns([_HEADS, *map(_line, nodes)], left=(0, 1, 2))))
    return 0


def fetch(url: str) -> list[dict[str, object]]:
    """Blocks. Each with `node`, `host`, `port`, `self` and `first`. RetryableError when no OAP
    answers there."""
    # No proxy: it is a port of this machine or its network, whatever the environment says.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_S) as response:
            found = json.loads(response.read(ANSWER_BYTES_MAX))["nodes"]
        return [
            {
                "node": f"{one['host']}:{one['port']}",
                **{key: one[key] for key in ("host", "port", "self")},
                "first": at == 0,
            }
            for at, one in enumerate(found)
        ]
    except (OSError, urllib.error.URLError, ValueError, LookupError, TypeError) as error:
        raise RetryableError(f"no OAP shows its nodes at {url}: {error}") from error


def _line(node: dict[str, object]) -> tuple[str, str, str]:
    return (
        str(node["node"]),
        "yes" if node["self"] else "",
        "yes" if node["first"] else "",
    )

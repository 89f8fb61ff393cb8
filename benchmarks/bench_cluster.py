"""How soon a node is registered again with a coordinator that was killed and has lost its data.

In timeouts of a session, from the moment at which the server answers again: a registration that is
made anew late is one that other nodes miss for no reason.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from figures import figure

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from oap.cluster.member import coordinator
from skyfarer.oap.cluster.membership import Membership
from skyfarer.oap.core.cluster import Node
from third_parties.etcd import EtcdServer
from third_parties.servers import Server
from third_parties.zookeeper import ZooKeeperServer

TURNS = 5
TIMEOUT_S = 4
TIMEOUTS_MAX = 2.0
GIVEN_UP_S = 120.0
SERVERS = {"etcd": EtcdServer, "zookeeper": ZooKeeperServer}


def rejoined_s(node: Membership, server: Server) -> float:
    renewals = node.standing().renewals
    server.kill()
    server.wipe()
    server.start()
    began = time.monotonic()
    while node.standing().renewals == renewals:
        if time.monotonic() - began > GIVEN_UP_S:
            break
        time.sleep(0.005)
    return time.monotonic() - began


def measure(kind: str) -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        server = SERVERS[kind](Path(scratch))
        server.start()
        node = coordinator(kind, server.address, TIMEOUT_S)
        try:
            node.start()
            node.register(Node("10.0.0.1", 11800))
            longest_s = max(rejoined_s(node, server) for _ in range(TURNS))
        finally:
            node.stop(10)
            server.kill()
    name = f"{kind}_rejoin_longest_of_{TURNS}"
    return figure(name, longest_s / TIMEOUT_S, "session timeouts", at_most=TIMEOUTS_MAX)


def main() -> int:
    met = [measure(kind) for kind in SERVERS]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())

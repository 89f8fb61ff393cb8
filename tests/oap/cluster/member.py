"""A program that is one node: registers, and says how it stands for each line it is given."""

from __future__ import annotations

import json
import sys
from typing import Any

from skyfarer.oap.cluster.membership import Membership, RetrySettings
from skyfarer.oap.core.cluster import Coordinator, Node


def coordinator(kind: str, address: str, timeout_s: int, **settings: Any) -> Membership:
    if kind == "etcd":
        from skyfarer.oap.cluster.etcd import EtcdRegistrar, EtcdSettings

        registrar = EtcdRegistrar(EtcdSettings(address, lease_s=timeout_s, **settings))
        return Membership(registrar, RetrySettings(base_s=0.1, attempts_max=2))
    from skyfarer.oap.cluster.zookeeper import ZooKeeper, ZooKeeperSettings

    zookeeper = ZooKeeperSettings(
        address, retry_base_s=0.1, session_timeout_s=timeout_s, **settings
    )
    return Membership(ZooKeeper(zookeeper), RetrySettings(base_s=0.1, attempts_max=2))


def stands(one: Coordinator) -> str:
    selves = [node.name for node in one.nodes() if node.is_self]
    return json.dumps({"selves": selves, "renewals": one.standing().renewals})


def main(asked: dict[str, Any]) -> None:
    node = Node(asked.pop("host"), asked.pop("port"))
    one = coordinator(**asked)
    one.start()
    one.register(node)
    print("registered", flush=True)
    for _ in sys.stdin:
        print(stands(one), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

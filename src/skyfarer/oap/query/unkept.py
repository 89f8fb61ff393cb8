"""Root fields about what this program does not keep: what the original answers where it has none.

A client that asks for them on every page (SkyWalking's does) is told that there is nothing, not
that it has asked for something strange.

    alarms     no rule raises any
    hierarchy  no service is known in two layers; which layer stands on which is known
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LAYER_LEVELS: Final = {
    **dict.fromkeys(("MESH", "GENERAL", "SO11Y_OAP", "VIRTUAL_DATABASE", "VIRTUAL_MQ"), 3),
    **dict.fromkeys(
        (
            *("MYSQL", "POSTGRESQL", "APISIX", "NGINX", "ROCKETMQ", "CLICKHOUSE", "RABBITMQ"),
            *("KAFKA", "PULSAR", "ACTIVEMQ", "KONG", "AIRFLOW"),
        ),
        2,
    ),
    **dict.fromkeys(("MESH_DP", "CILIUM_SERVICE"), 1),
    "K8S_SERVICE": 0,
}
"""SkyWalking's: what stands higher is nearer to the user."""


def table() -> dict[str, Callable[..., object]]:
    levels = [{"layer": layer, "level": level} for layer, level in LAYER_LEVELS.items()]
    return {
        "getAlarm": lambda **_: {"msgs": []},
        "queryAlarmTagAutocompleteKeys": lambda **_: [],
        "queryAlarmTagAutocompleteValues": lambda **_: [],
        "getServiceHierarchy": lambda **_: {"relations": []},
        "getInstanceHierarchy": lambda **_: {"relations": []},
        "listLayerLevels": lambda: levels,
    }

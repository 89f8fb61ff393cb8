"""Layers: where a service stands (GENERAL, a mesh, a database, …), by SkyWalking's numbers."""

from __future__ import annotations

from enum import IntEnum


class Layer(IntEnum):
    UNDEFINED = 0
    MESH = 1
    GENERAL = 2
    OS_LINUX = 3
    K8S = 4
    FAAS = 5
    MESH_CP = 6
    MESH_DP = 7
    DATABASE = 8
    CACHE = 9
    BROWSER = 10
    SO11Y_OAP = 11
    SO11Y_SATELLITE = 12
    MQ = 13
    VIRTUAL_DATABASE = 14
    VIRTUAL_MQ = 15
    VIRTUAL_GATEWAY = 16
    K8S_SERVICE = 17
    MYSQL = 18
    VIRTUAL_CACHE = 19
    POSTGRESQL = 20
    APISIX = 21
    AWS_EKS = 22
    OS_WINDOWS = 23
    AWS_S3 = 24
    AWS_DYNAMODB = 25
    AWS_GATEWAY = 26
    REDIS = 27
    ELASTICSEARCH = 28
    RABBITMQ = 29
    MONGODB = 30
    KAFKA = 31
    PULSAR = 32
    BOOKKEEPER = 33
    NGINX = 34
    ROCKETMQ = 35
    CLICKHOUSE = 36
    ACTIVEMQ = 37
    CILIUM_SERVICE = 38
    SO11Y_JAVA_AGENT = 39
    KONG = 40
    SO11Y_GO_AGENT = 41
    FLINK = 42
    BANYANDB = 43
    GENAI = 44
    VIRTUAL_GENAI = 45
    ENVOY_AI_GATEWAY = 46
    IOS = 47
    WECHAT_MINI_PROGRAM = 48
    ALIPAY_MINI_PROGRAM = 49
    AIRFLOW = 50

    @property
    def normal(self) -> bool:
        """False for what agents only conjecture: their service ids end in `.0`."""
        return self not in _CONJECTURED


_CONJECTURED = frozenset(
    {
        Layer.UNDEFINED,
        Layer.VIRTUAL_DATABASE,
        Layer.VIRTUAL_MQ,
        Layer.VIRTUAL_GATEWAY,
        Layer.VIRTUAL_CACHE,
        Layer.VIRTUAL_GENAI,
    }
)


def layer_named(name: str) -> Layer:
    """The layer of that name; UNDEFINED for a name nobody knows."""
    return Layer.__members__.get(name, Layer.UNDEFINED)

"""Names of SkyWalking 6.2 to 10.4 that this version knows and does not use yet.

A stock application.yml must load: what stands here is read and reported in one line, where a
misspelt name is an error. A name leaves this file on the day its capability arrives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES: Final = _names(
    """
    admin-server ai-pipeline alarm aws-firehose cilium-fetcher configuration
    configuration-discovery debugging-query dsl-debugging envoy-metric event-analyzer exporter
    gen-ai-analyzer health-checker inspect istio-telemetry kafka-fetcher log-analyzer logql
    prometheus-fetcher promql query-zipkin receiver-async-profiler receiver-browser receiver-clr
    receiver-ebpf receiver-event receiver-jvm receiver-log receiver-meter receiver-oc
    receiver-otel receiver-pprof receiver-profile receiver-register receiver-runtime-rule
    receiver-so11y receiver-telegraf receiver-trace receiver-zabbix receiver-zipkin
    receiver_jaeger receiver_zipkin service-mesh status status-query traceQL ui-management
    """
)

PROVIDERS: Final[Mapping[str, frozenset[str]]] = {
    "cluster": _names("zookeeper kubernetes consul etcd nacos"),
    "storage": _names(
        """
        banyandb elasticsearch elasticsearch7 h2 influxdb iotdb mysql mysql-sharding opensearch
        tidb zipkin-elasticsearch zipkin-elasticsearch7
        """
    ),
    "telemetry": _names("none so11y"),
}

_REST: Final = """
    restContextPath restMinThreads restMaxThreads restAcceptQueueSize restAcceptorPriorityDelta
    """
_GRPC: Final = "gRPCThreadPoolSize gRPCThreadPoolQueueSize"

KEYS: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("core", "default"): _names(
        f"""
        {_REST} {_GRPC} restIdleTimeOut httpMaxRequestHeaderSize gRPCSslTrustedCAPath
        downsampling l1FlushPeriod storageSessionTimeout persistentPeriod
        enableDatabaseSession topNReportPeriod activeExtraModelColumns serviceCacheRefreshInterval
        searchableAlarmTags
        autocompleteTagKeysQueryMaxSize autocompleteTagValuesQueryMaxSize prepareThreads
        enableEndpointNameGroupingByOpenapi syncPeriodHttpUriRecognitionPattern
        trainingPeriodHttpUriRecognitionPattern maxHttpUrisNumberPerService enableHierarchy
        maxHeapMemoryUsagePercent maxDirectMemoryUsage remoteTimeout
        maxSizeOfNetworkAddressAlias maxSizeOfProfileTask maxSizeOfPprofTask
        maxPageSizeOfQueryProfileSnapshot maxSizeOfAnalyzeProfileSnapshot
        maxDurationOfQueryEBPFProfilingData minuteMetricsDataTTL hourMetricsDataTTL
        dayMetricsDataTTL monthMetricsDataTTL otherMetricsDataTTL syncThreads maxSyncOperationNum
        """
    ),
    ("agent-analyzer", "default"): _names("meterAnalyzerActiveFiles maxSlowSQLLength"),
    ("receiver-sharing-server", "default"): _names(
        f"""
        {_REST} {_GRPC} host contextPath jettyMinThreads jettyMaxThreads jettyIdleTimeOut
        jettyAcceptorPriorityDelta jettyAcceptQueueSize
        """
    ),
    ("storage", "postgresql"): _names("maxSizeOfBatchSql"),
    ("query", "graphql"): _names(
        "path enableLogTestTool maxQueryComplexity enableUpdateUITemplate enableOnDemandPodLog"
    ),
    ("telemetry", "prometheus"): _names("sslEnabled sslKeyPath sslCertChainPath"),
}

# Whoever sets one of these believes to be protected: to go on without it would be a lie.
PROTECTION: Final = frozenset({"sslEnabled"})

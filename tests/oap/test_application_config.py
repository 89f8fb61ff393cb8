from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from oap.configuring import MINIMAL, chosen, flat, load, refusal
from skyfarer.base.config import read_yaml
from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.catalog import CONFIGS
from skyfarer.oap.boot.config import SHIPPED, construct, load_application, unshared
from skyfarer.oap.boot.settings import (
    AnalyzerConfig,
    CoreConfig,
    DuckDBConfig,
    PostgreSQLConfig,
    PrometheusConfig,
    SharingServerConfig,
    thresholds_ms,
)


def test_the_shipped_file_chooses_what_this_version_has() -> None:
    application = load_application(None, {})

    assert chosen(application) == [
        "cluster.standalone",
        "core.default",
        "storage.duckdb",
        "agent-analyzer.default",
        "receiver-sharing-server.default",
        "query.graphql",
        "telemetry.prometheus",
    ]
    assert application.warnings == ()


@pytest.mark.parametrize(
    "config", [CoreConfig, DuckDBConfig, AnalyzerConfig, SharingServerConfig, PrometheusConfig]
)
def test_the_defaults_of_the_shipped_file_are_those_of_the_code(config: type) -> None:
    assert load_application(None, {}).config(config) == config()


def test_the_shipped_file_shows_every_key_with_a_variable() -> None:
    document = read_yaml(SHIPPED, {})
    for (module, provider), config in CONFIGS.items():
        values = document.keys(module, provider)
        assert list(values) == [field.name for field in fields(config)], f"{module}.{provider}"
        for _, value in flat(values):
            assert re.fullmatch(r"\$\{(SW|SKYFARER)_[A-Z0-9_]+:.*\}", str(value))


def test_a_cluster_whose_nodes_share_no_storage_is_warned_of() -> None:
    providers = construct(load_application(None, {"SW_CLUSTER": "etcd"}))
    assert unshared(providers) == [
        "storage.duckdb is this node's alone: other nodes of cluster.etcd do not see what is"
        " reported to this one",
    ]


def test_a_node_that_is_alone_or_shares_its_storage_is_warned_of_nothing() -> None:
    assert unshared(construct(load_application(None, {}))) == []
    shared = {"SW_CLUSTER": "etcd", "SW_STORAGE": "postgresql", "SW_DATA_SOURCE_PASSWORD": "x"}
    assert unshared(construct(load_application(None, shared))) == []


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"SW_ZK_ENABLE_ACL": "true", "SW_ZK_EXPRESSION": "oap"}, "an expression of user:password"),
        ({"SW_ZK_SCHEMA": "sasl"}, "schema is 'sasl'; there are: digest"),
        ({"SW_CLUSTER_ZK_HOST_PORT": ""}, "hostPort must name"),
        ({"SW_CLUSTER_ZK_MAX_RETRIES": "-1"}, "maxRetries must be at least 0"),
        ({"SW_CLUSTER": "etcd", "SW_CLUSTER_ETCD_ENDPOINTS": ""}, "endpoints must name"),
        (
            {"SW_CLUSTER": "etcd", "SW_CLUSTER_ETCD_AUTHENTICATION": "true"},
            "authentication needs user and password",
        ),
        ({"SW_CLUSTER": "etcd", "SW_CLUSTER_INTERNAL_COM_PORT": "65536"}, "internalComPort must"),
        ({"SW_CLUSTER": "consul"}, "'consul', which is not in this version; there are: etcd"),
    ],
)
def test_a_mistake_of_a_cluster_is_refused(environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load_application(None, {"SW_CLUSTER": "zookeeper", **environ})


def test_the_originals_variables_are_honoured() -> None:
    application = load_application(
        None,
        {
            "SW_CORE_REST_PORT": "22800",
            "SW_CORE_GRPC_PORT": "0",
            "SW_SERVICE_NAME_MAX_LENGTH": "50",
            "SW_TELEMETRY_PROMETHEUS_PORT": "1235",
            "SKYFARER_DATA_DIR": "/var/lib/skyfarer",
            "SW_STORAGE_DUCKDB_PATH": "/db/file.duckdb",
        },
    )
    core = application.config(CoreConfig)

    assert (core.restPort, core.gRPCPort, core.serviceNameMaxLength) == (22800, 0, 50)
    assert core.dataDirectory == Path("/var/lib/skyfarer")
    assert application.config(DuckDBConfig).path == Path("/db/file.duckdb")
    assert application.config(PrometheusConfig).port == 1235


def test_how_many_services_of_postgresql_are_listed_has_the_originals_variable() -> None:
    chosen = {"SW_STORAGE": "postgresql", "SW_DATA_SOURCE_PASSWORD": "x"}
    ours = {"SW_STORAGE_POSTGRESQL_QUERY_MAX_SIZE": "7"}
    for environ, expected in (
        ({}, 5000),
        (ours, 7),
        ({**ours, "SW_STORAGE_MYSQL_QUERY_MAX_SIZE": "8"}, 8),
    ):
        config = load_application(None, chosen | environ).config(PostgreSQLConfig)
        assert config.metadataQueryMaxSize == expected


@pytest.mark.parametrize("selector", ["-", "", "none"])
def test_a_module_is_turned_off_by_its_selector(selector: str) -> None:
    application = load_application(None, {"SW_TELEMETRY": selector})

    assert "telemetry.prometheus" not in chosen(application)
    with pytest.raises(ConfigError, match="PrometheusConfig"):
        application.config(PrometheusConfig)


def test_a_default_selector_of_a_dash_turns_the_module_off(file: Path) -> None:
    text = MINIMAL + "telemetry:\n  selector: ${SW_TELEMETRY:-}\n  prometheus:\n"

    assert chosen(load(file, text)) == ["cluster.standalone", "core.default"]


def test_a_chosen_provider_needs_no_section(file: Path) -> None:
    application = load(file, "storage:\n  selector: duckdb\n")

    assert application.config(DuckDBConfig) == DuckDBConfig()


def test_a_file_without_selectors_means_the_only_provider_there_is(file: Path) -> None:
    assert chosen(load(file, "core:\n  default:\n    restPort: 1\n")) == ["core.default"]
    assert refusal(file, "storage:\n  duckdb:\n  h2:\n") == (
        "application.yml: storage needs a 'selector'"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "stroage:\n  selector: duckdb\n",
            "application.yml has a module that is unknown: 'stroage'; did you mean 'storage'?",
        ),
        (
            "storage:\n  selector: dukdb\n",
            "application.yml: storage.selector is unknown: 'dukdb'; did you mean 'duckdb'?",
        ),
        (
            "storage:\n  selector: elasticsearch\n",
            "application.yml: storage.selector is 'elasticsearch', which is not in this version;"
            " there are: duckdb, postgresql",
        ),
        (
            "storage:\n  selector: duckdb\n  ducdb:\n    path: x\n",
            "application.yml: storage has no provider 'ducdb'; did you mean 'duckdb'?",
        ),
        (
            "core:\n  selecter: default\n",
            "application.yml: core has no provider 'selecter'; did you mean 'selector'?",
        ),
        (
            "core:\n  selector: default\n  default:\n    gRPCprt: 1\n",
            "application.yml: core.default has no key 'gRPCprt'; did you mean 'gRPCPort'?",
        ),
        (
            "core:\n  selector: default\n  default:\n    gRPCPort: ${SW_CORE_GRPC_PORT:12x}\n",
            "application.yml: core.default.gRPCPort must be a whole number, not '12x'",
        ),
        (
            "core:\n  selector: default\n  default:\n    gRPCPort: 65536\n",
            "application.yml: core.default: gRPCPort must be from 0 to 65535, not 65536",
        ),
        (
            "core:\n  selector: default\n  default:\n    recordDataTTL: 1\n",
            "application.yml: core.default: recordDataTTL must be from 2 to 3650, not 1",
        ),
        (
            "core:\n  selector: default\n  default:\n    role: Reciever\n",
            "application.yml: core.default.role is 'Reciever'; did you mean 'Receiver'?",
        ),
        (
            "core:\n  selector: default\n  default: 5\n",
            "application.yml: core.default must hold keys and values, not '5'",
        ),
        ("core: 5\n", "application.yml: core must hold keys and values, not '5'"),
        (
            "core:\n  selector: [default]\n",
            "application.yml: core.selector must be text, not ['default']",
        ),
        (
            "core:\n  selector: default\n  default:\n    restPort: ${SW_P:1\n",
            "application.yml: core.default.restPort has a placeholder without its closing brace:"
            " '${SW_P:1'",
        ),
        (
            "core:\n  selector: default\ncore:\n  selector: default\n",
            "application.yml: the key 'core' is given twice, in lines 1 and 3",
        ),
        (
            "agent-analyzer:\n  selector: default\n  default:\n    driverMemory: 1 gig\n",
            "application.yml: agent-analyzer.default: driverMemory must be a size such as 1g,"
            " not '1 gig'",
        ),
        (
            "agent-analyzer:\n  selector: default\n"
            "  default:\n    slowDBAccessThreshold: default:200,mongodb\n",
            "application.yml: agent-analyzer.default: slowDBAccessThreshold must be like"
            " default:200,mongodb:100, in milliseconds; 'mongodb' is not",
        ),
        (
            "agent-analyzer:\n  selector: default\n"
            "  default:\n    segmentStatusAnalysisStrategy: FROM_ENTRY\n",
            "application.yml: agent-analyzer.default.segmentStatusAnalysisStrategy is 'FROM_ENTRY';"
            " did you mean 'FROM_ENTRY_SPAN'?",
        ),
        (
            "receiver-sharing-server:\n  selector: default\n"
            "  default:\n    queueCapacityBytes: 9\n",
            "application.yml: receiver-sharing-server.default: queueCapacityBytes must be from"
            " 33554432 to 1099511627776, not 9",
        ),
        (
            "receiver-sharing-server:\n  selector: default\n"
            "  default:\n    queueSegmentBytes: 65536\n    queueCapacityBytes: 8589934592\n",
            "application.yml: receiver-sharing-server.default: queueCapacityBytes must be at most"
            " 65536 times queueSegmentBytes",
        ),
        (
            "receiver-sharing-server:\n  selector: default\n"
            "  default:\n    queueSegmentBytes: 65537\n",
            "application.yml: receiver-sharing-server.default: queueSegmentBytes must be a multiple"
            " of 4096, not 65537",
        ),
        (
            "receiver-sharing-server:\n  selector: default\n"
            "  default:\n    queueDurability: fsynch\n",
            "application.yml: receiver-sharing-server.default.queueDurability is 'fsynch';"
            " did you mean 'fsync'?",
        ),
        (
            "receiver-sharing-server:\n  selector: default\n"
            "  default:\n    queueFlushPeriodMs: 60001\n",
            "application.yml: receiver-sharing-server.default: queueFlushPeriodMs must be from"
            " 0 to 60000, not 60001",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_the_nearest_valid_name(
    file: Path, text: str, sentence: str
) -> None:
    assert refusal(file, text) == sentence


def test_overrides_replace_what_the_file_says(file: Path) -> None:
    text = MINIMAL.replace("default:\n", "default:\n    restPort: 1\n")
    application = load(
        file,
        text,
        {"core.default.restPort": "2", "core.default.gRPCPort": 3, "core.default.gRPCHost": "::1"},
    )
    core = application.config(CoreConfig)

    assert (core.restPort, core.gRPCPort, core.gRPCHost) == (2, 3, "::1")


def test_an_override_chooses_a_provider_even_of_a_module_the_file_leaves_out(file: Path) -> None:
    application = load(file, MINIMAL, {"storage.selector": "duckdb", "core.selector": "-"})

    assert chosen(application) == ["cluster.standalone", "storage.duckdb"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("croe.default.x", "override 'croe.default.x': there is no module 'croe'; did you"),
        ("core.defalt.x", "override 'core.defalt.x': module 'core' has no provider 'defalt'; did"),
        ("core.default.restProt", "core.default has no key 'restProt'; did you mean 'restPort'?"),
        ("core", "override 'core': module 'core' has no provider ''"),
        ("core.default", "override 'core.default': core.default has no key ''"),
    ],
)
def test_a_mistaken_override_is_one_sentence(file: Path, name: str, sentence: str) -> None:
    assert sentence in refusal(file, MINIMAL, {name: "1"})


def test_the_value_of_an_override_is_checked_like_the_files(file: Path) -> None:
    assert refusal(file, MINIMAL, {"core.default.restPort": "x"}) == (
        "application.yml: core.default.restPort must be a whole number, not 'x'"
    )


def test_known_names_of_later_versions_are_reported_and_not_fatal(file: Path) -> None:
    text = """
core:
  selector: default
  default:
    restContextPath: /
    downsampling:
      - Hour
      - Day
    gRPCSslTrustedCAPath: ${SW_CORE_GRPC_SSL_TRUSTED_CA_PATH:""}
    maxMessageSize: 0
storage:
  selector: ${SW_STORAGE:duckdb}
  elasticsearch:
    namespace: ${SW_NAMESPACE:""}
receiver-sharing-server:
  selector: default
  default:
    restContextPath: ${SW_RECEIVER_SHARING_REST_CONTEXT_PATH:/}
    authentication: ${SW_AUTHENTICATION:""}
receiver-jvm:
  selector: default
  default:
alarm:
  selector: ${SW_ALARM:default}
  default:
envoy-metric:
  selector: ${SW_ENVOY_METRIC:-}
  default:
    k8sServiceNameRule: ${K8S_SERVICE_NAME_RULE:"${pod.metadata.labels.(service.istio.io/x)}"}
"""
    application = load(file, text)

    assert application.config(CoreConfig) == CoreConfig()
    assert application.warnings == (
        "application.yml: core.default: downsampling, gRPCSslTrustedCAPath, restContextPath: read"
        " but not used yet",
        "application.yml: receiver-sharing-server.default: restContextPath: read but not used yet",
        "application.yml: receiver-jvm, alarm: read but not used yet",
    )


def test_the_analyzers_keys_have_the_originals_defaults_and_forms() -> None:
    analyzer = load_application(None, {}).config(AnalyzerConfig)
    other = load_application(
        None,
        {"SW_NO_UPSTREAM_REAL_ADDRESS": "6000", "SKYFARER_OAL_FILES": "a.oal, b"},
    ).config(AnalyzerConfig)

    assert thresholds_ms("x", analyzer.slowDBAccessThreshold) == {"default": 200, "mongodb": 100}
    assert thresholds_ms("x", analyzer.slowCacheReadThreshold) == {"default": 20, "redis": 10}
    assert thresholds_ms("x", " MongoDB:1 ,") == {"mongodb": 1}
    assert analyzer.noUpstreamRealAddressAgents == (6000, 9000)
    assert (other.noUpstreamRealAddressAgents, other.oalFiles) == (
        (6000,),
        (Path("a.oal"), Path("b")),
    )


def test_a_stock_file_of_postgresql_is_understood(file: Path) -> None:
    text = """storage:
  selector: ${SW_STORAGE:postgresql}
  postgresql:
    properties:
      jdbcUrl: ${SW_JDBC_URL:"jdbc:postgresql://db:5433/apm"}
      dataSource.user: ${SW_DATA_SOURCE_USER:postgres}
      dataSource.password: ${SW_DATA_SOURCE_PASSWORD:x}
      dataSource.cachePrepStmts: ${SW_DATA_SOURCE_CACHE_PREP_STMTS:true}
      dataSource.prepStmtCacheSize: ${SW_DATA_SOURCE_PREP_STMT_CACHE_SQL_SIZE:250}
      dataSource.prepStmtCacheSqlLimit: ${SW_DATA_SOURCE_PREP_STMT_CACHE_SQL_LIMIT:2048}
      dataSource.useServerPrepStmts: ${SW_DATA_SOURCE_USE_SERVER_PREP_STMTS:true}
    metadataQueryMaxSize: ${SW_STORAGE_MYSQL_QUERY_MAX_SIZE:5000}
    maxSizeOfBatchSql: ${SW_STORAGE_MAX_SIZE_OF_BATCH_SQL:2000}
    asyncBatchPersistentPoolSize: ${SW_STORAGE_ASYNC_BATCH_PERSISTENT_POOL_SIZE:4}
"""
    application = load(file, text)

    assert application.config(PostgreSQLConfig).conninfo() == (
        "user='postgres' password='x' host='db' port='5433' dbname='apm'"
    )
    assert application.warnings == (
        "application.yml: storage.postgresql: maxSizeOfBatchSql: read but not used yet",
    )


def test_a_misspelt_property_of_postgresql_is_refused(file: Path) -> None:
    text = "storage:\n  postgresql:\n    properties:\n      dataSource.pasword: x\n"

    assert refusal(file, text) == (
        "application.yml: storage.postgresql: properties has no key 'dataSource.pasword'; "
        "did you mean 'dataSource.password'?"
    )

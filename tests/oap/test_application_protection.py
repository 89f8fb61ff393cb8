"""Ports, secrets and passwords: what is open is warned of, what is secret is shown nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oap.configuring import load, refusal
from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.config import construct, load_application
from skyfarer.oap.boot.settings import (
    CoreConfig,
    PostgreSQLConfig,
    PrometheusConfig,
    SharingServerConfig,
)


def test_every_port_listens_on_this_machine_alone_unless_told_otherwise() -> None:
    application = load_application(None, {})
    core, telemetry = application.config(CoreConfig), application.config(PrometheusConfig)

    sharing = application.config(SharingServerConfig)

    hosts = {core.restHost, core.gRPCHost, telemetry.host, sharing.restHost, sharing.gRPCHost}
    assert hosts == {"127.0.0.1"}


def test_an_open_port_is_warned_of() -> None:
    application = load_application(None, {"SW_CORE_GRPC_HOST": "0.0.0.0"})

    assert application.config(CoreConfig).gRPCHost == "0.0.0.0"
    assert application.warnings == (
        "application.yml: core.default.gRPCHost is 0.0.0.0: open to the network, neither encrypted"
        " nor authenticated",
    )
    assert load_application(None, {"SW_CORE_GRPC_HOST": "::1"}).warnings == ()
    assert load_application(None, {"SW_CORE_GRPC_HOST": "localhost"}).warnings == ()


def test_the_secrets_of_a_cluster_are_never_shown() -> None:
    environ = {"SW_ZK_EXPRESSION": "oap:hidden", "SW_CLUSTER_ETCD_PASSWORD": "hidden"}
    for cluster in ("etcd", "zookeeper"):
        application = load_application(None, {**environ, "SW_CLUSTER": cluster})
        assert "hidden" not in repr(application)


TLS = {"SSL_ENABLED": "true", "SSL_KEY_PATH": "key.pem", "SSL_CERT_CHAIN_PATH": "chain.pem"}


EVERYWHERE = {"SW_CORE_GRPC_HOST": "0.0.0.0", "SW_CORE_REST_HOST": "0.0.0.0"}


def encrypted(prefix: str, **more: str) -> dict[str, str]:
    return {f"{prefix}_{name}": value for name, value in {**TLS, **more}.items()}


@pytest.mark.parametrize(
    ("environ", "lacks"),
    [
        ({"SW_AUTHENTICATION": "x"}, ["gRPCHost: not encrypted", "restHost: neither"]),
        ({"SKYFARER_AUTHENTICATION_FILE": "x"}, ["gRPCHost: not encrypted", "restHost: neither"]),
        (encrypted("SW_CORE_GRPC"), ["gRPCHost: not authenticated", "restHost: neither"]),
        (encrypted("SW_CORE_GRPC") | {"SW_AUTHENTICATION": "x"}, ["restHost: neither"]),
        (encrypted("SW_CORE_REST"), ["gRPCHost: neither", "restHost: not authenticated"]),
        # With a port of the receiver's own nobody listens at core's.
        ({"SW_RECEIVER_GRPC_PORT": "1"}, ["restHost: neither"]),
        (
            encrypted("SW_RECEIVER_GRPC", PORT="1", HOST="::", SSL_TRUSTED_CAS_PATH="ca.pem"),
            ["restHost: neither"],
        ),
        (
            {"SW_RECEIVER_SHARING_REST_HOST": "::", "SW_RECEIVER_SHARING_REST_PORT": "1"},
            ["gRPCHost: neither", "restHost: neither", "restHost: neither"],
        ),
        # A port that is core's is not listened at.
        ({"SW_RECEIVER_GRPC_HOST": "0.0.0.0"}, ["gRPCHost: neither", "restHost: neither"]),
    ],
)
def test_an_open_port_is_warned_of_with_what_it_lacks(
    environ: dict[str, str], lacks: list[str]
) -> None:
    warnings = load_application(None, EVERYWHERE | environ).warnings
    shown = re.findall(r"(\w+Host) is \S+: open to the network, (neither|not \w+)", str(warnings))

    assert sorted(f"{key}: {lack}" for key, lack in shown) == lacks


def test_a_protection_that_cannot_be_given_is_refused(file: Path) -> None:
    text = "telemetry:\n  selector: prometheus\n  prometheus:\n    sslEnabled: ${ASKED:false}\n"

    assert refusal(file, text, ASKED="true") == (
        "application.yml: telemetry.prometheus.sslEnabled is set, but this version cannot honour"
        " it yet"
    )
    assert "sslEnabled: read but not used yet" in load(file, text).warnings[0]


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"SW_CORE_GRPC_SSL_ENABLED": "true"}, "gRPCSslEnabled needs gRPCSslKeyPath and"),
        ({"SW_CORE_REST_SSL_ENABLED": "true"}, "restSSLEnabled needs restSSLKeyPath and"),
        ({"SW_RECEIVER_GRPC_SSL_ENABLED": "true"}, "gRPCSslEnabled needs a gRPCPort of its own"),
        (
            {"SW_RECEIVER_SHARING_REST_SSL_ENABLED": "true"},
            "restSSLEnabled needs a restPort of its own",
        ),
        (
            {"SW_RECEIVER_GRPC_PORT": "1", "SW_RECEIVER_GRPC_SSL_TRUSTED_CAS_PATH": "ca.pem"},
            "gRPCSslTrustedCAsPath needs gRPCSslEnabled",
        ),
    ],
)
def test_a_protection_that_lacks_something_is_refused(
    environ: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load_application(None, environ)


def test_a_token_is_never_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        load_application(None, {"SW_AUTHENTICATION": "sécret"})

    assert "cret" not in str(refused.value)
    assert "secret" not in repr(load_application(None, {"SW_AUTHENTICATION": "secret"}))


def test_postgresql_without_a_password_is_refused_when_it_is_chosen() -> None:
    application = load_application(None, {"SW_STORAGE": "postgresql"})

    assert application.config(PostgreSQLConfig) == PostgreSQLConfig()
    with pytest.raises(ConfigError) as refused:
        construct(application)
    assert str(refused.value) == (
        "storage.postgresql: dataSource.password has no value: set SW_DATA_SOURCE_PASSWORD"
    )


def test_postgresqls_password_is_shown_nowhere(file: Path) -> None:
    text = "storage:\n  selector: postgresql\n  postgresql:\n    properties:\n"
    application = load(file, text + "      dataSource.password: s3cret\n")

    assert "s3cret" not in repr(application)
    assert "password='s3cret'" in application.config(PostgreSQLConfig).conninfo()

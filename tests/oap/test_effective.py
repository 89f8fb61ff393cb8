"""The configuration as it is shown to others: every value, and no secret."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.config import Application, Chosen, load_application
from skyfarer.oap.boot.effective import MASK, effective, masked
from skyfarer.oap.boot.providers.core import CoreProvider, Node
from skyfarer.oap.boot.settings import CoreConfig, PostgreSQLConfig
from skyfarer.oap.core.modules import Offer

CANARY = "s3cr3t-canary"


def test_the_shipped_configuration_is_shown_with_its_defaults() -> None:
    shown = effective(load_application(None, {}))
    assert shown["core.provider"] == "default"
    assert shown["storage.provider"] == "duckdb"
    assert shown["core.default.restPort"] == "12800"
    assert shown["core.default.restSSLEnabled"] == "false"
    assert shown["core.default.restSSLKeyPath"] == ""
    assert shown["core.default.searchableLogsTags"] == "level,http.status_code,ai_route_type"
    assert all(isinstance(value, str) for value in shown.values())


def test_what_the_environment_and_overrides_say_is_shown_but_for_the_token() -> None:
    environ = {"SW_AUTHENTICATION": CANARY, "SW_CORE_RECORD_DATA_TTL": "5"}
    shown = effective(load_application(None, environ, {"core.default.restPort": 1}))
    assert shown["core.default.recordDataTTL"] == "5"
    assert shown["core.default.restPort"] == "1"
    assert shown["receiver-sharing-server.default.authentication"] == MASK
    assert CANARY not in str(shown)


@dataclass(frozen=True)
class Config:
    user: str = CANARY
    password: str = CANARY
    dbPassword: str = CANARY  # noqa: N815
    trustStorePass: str = CANARY  # noqa: N815
    apiToken: str = CANARY  # noqa: N815
    accessKey: str = CANARY  # noqa: N815
    secretKey: str = CANARY  # noqa: N815
    expression: str = CANARY
    authentication: str = ""
    hosts: tuple[str, ...] = (f"http://me:{CANARY}@a:9200", f"//{CANARY}@b/x")
    jdbcUrl: str = f"postgresql://me:{CANARY}@db:5432/skyfarer"  # noqa: N815


def test_no_secret_is_shown_whatever_its_key_is_called() -> None:
    shown = effective(Application((Chosen("storage", "toy", Config()),), ()))
    assert CANARY not in str(shown)
    assert shown["storage.toy.authentication"] == MASK, "nor whether there is one"
    assert shown["storage.toy.hosts"] == f"http://{MASK}@a:9200,//{MASK}@b/x"
    assert shown["storage.toy.jdbcUrl"] == f"postgresql://{MASK}@db:5432/skyfarer"


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://db/apm",
        f"jdbc:postgresql://db/apm?user={CANARY}&password={CANARY}&ssl=true",
        f"jdbc:postgresql://db/apm?ssl=true&pass%77ord={CANARY}",
        f"jdbc:postgresql://me:{CANARY}@db/apm",
        f"jdbc:postgresql://me:a/b?c,@{CANARY}@db/apm",
    ],
)
def test_the_password_of_postgresql_is_not_shown_wherever_it_was_told(url: str) -> None:
    told = {"SW_STORAGE": "postgresql", "SW_DATA_SOURCE_PASSWORD": CANARY, "SW_JDBC_URL": url}
    shown = effective(load_application(None, told))
    assert CANARY not in str(shown)
    assert shown["storage.postgresql.properties.dataSource.password"] == MASK
    assert shown["storage.postgresql.properties.dataSource.user"] == MASK
    told_url = shown["storage.postgresql.properties.jdbcUrl"]
    assert told_url.startswith("jdbc:postgresql://") and "db/apm" in told_url
    assert ("ssl=true" in told_url) is ("ssl=true" in url), "what is no secret stays"


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        (f"{{dataSource.password: [{CANARY}]}}", "dataSource.password must be text"),
        (f"{{dataSource.passwort: {CANARY}}}", "properties has no key 'dataSource.passwort'"),
        (f"{{jdbcUrl: 'jdbc:postgresql://db/a?sslpassword={CANARY}'}}", "parameter sslpassword,"),
        (f"{{jdbcUrl: 'jdbc:postgresql://me:{CANARY}@db/a'}}", "jdbcUrl must be like"),
        (f"dataSource.password={CANARY}", "must hold keys and values"),
    ],
)
def test_a_start_that_fails_says_what_is_wrong_without_the_password(
    properties: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "application.yml"
    file.write_text(
        f"storage: {{selector: postgresql, postgresql: {{properties: {properties}}}}}\n"
    )
    with pytest.raises(ConfigError) as refused:
        load_application(file, {}).config(PostgreSQLConfig).conninfo()
    assert says in str(refused.value)
    assert CANARY not in "".join(traceback.format_exception(refused.value))


@dataclass(frozen=True)
class Nested:
    headers: dict[str, str]
    tokens: dict[str, str]
    below: Config


def test_no_secret_is_shown_of_a_value_that_has_keys_itself() -> None:
    nested = Nested({"Authorization": CANARY, "x": "1"}, {"path": CANARY}, Config())
    shown = effective(Application((Chosen("storage", "toy", nested),), ()))
    assert CANARY not in str(shown)
    assert shown["storage.toy.headers.x"] == "1"
    assert shown["storage.toy.tokens"] == MASK
    assert shown["storage.toy.below.password"] == MASK


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("authenticationFile", "/etc/skyfarer/tokens"),
        ("gRPCSslKeyPath", "/etc/skyfarer/key.pem"),
        ("sparkMaster", "spark://host:7077"),
        ("path", str(Path("/data/a@b"))),
    ],
)
def test_where_a_secret_lies_and_what_only_looks_like_one_are_shown(key: str, value: str) -> None:
    assert masked(key, value) == value


def test_every_module_can_ask_the_core_for_it(tmp_path: Path) -> None:
    application = load_application(None, {"SKYFARER_DATA_DIR": str(tmp_path / "data")})
    core = CoreProvider(application.config(CoreConfig))
    core.effective = effective(application)
    offer = Offer(core)
    core.prepare(offer)
    node = offer.complete()[Node]
    assert isinstance(node, Node)
    assert node.effective["core.default.dataDirectory"] == str(tmp_path / "data")

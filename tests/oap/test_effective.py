"""The configuration as it is shown to others: every value, and no secret."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from skyfarer.oap.boot.config import Application, Chosen, load_application
from skyfarer.oap.boot.effective import MASK, effective, masked
from skyfarer.oap.boot.providers.core import CoreProvider, Node
from skyfarer.oap.boot.settings import CoreConfig
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

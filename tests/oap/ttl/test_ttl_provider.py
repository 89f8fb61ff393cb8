"""The keeper as a module of the OAP, and its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.oap.admin.door import Door, ask
from skyfarer.oap.admin.ttl import TtlDesk
from skyfarer.oap.boot.config import construct, load_application
from skyfarer.oap.boot.providers.cluster import StandaloneProvider
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.providers.storage import DuckDBProvider
from skyfarer.oap.boot.providers.ttl import TtlProvider
from skyfarer.oap.boot.settings import CoreConfig, DuckDBConfig, NoKeys
from skyfarer.oap.core.modules import Modules
from skyfarer.testing.programs import eventually

VARIABLES = {
    "recordDataTTL": "SW_CORE_RECORD_DATA_TTL",
    "metricsDataTTL": "SW_CORE_METRICS_DATA_TTL",
}


@pytest.mark.parametrize("key", VARIABLES)
@pytest.mark.parametrize("typo", ["0", "1", "-7", "3651", "259200", "604800000"])
def test_t06_days_that_cannot_be_meant_are_refused_at_start(key: str, typo: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} must be from 2 to 3650, not {typo}"):
        load_application(None, {VARIABLES[key]: typo})
    own = f"SKYFARER_STORAGE_DUCKDB_{VARIABLES[key].removeprefix('SW_CORE_')}"
    with pytest.raises(ConfigError, match=rf"storage.duckdb: {key} must be from 2 to 3650"):
        load_application(None, {own: typo})


@pytest.mark.parametrize(
    ("written", "sentence"),
    [("7d", "must be a whole number, not '7d'"), ("", "must be a whole number, not empty")],
)
def test_t06_days_that_are_no_number_are_refused_at_start(written: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load_application(None, {"SW_CORE_RECORD_DATA_TTL": written})


@pytest.mark.parametrize("minutes", ["0", "-5", "1441", "300000"])
def test_t06_a_period_that_cannot_be_meant_is_refused_at_start(minutes: str) -> None:
    with pytest.raises(ConfigError, match=r"dataKeeperExecutePeriod must be from 1 to 1440"):
        load_application(None, {"SW_CORE_DATA_KEEPER_EXECUTE_PERIOD": minutes})


def test_the_originals_variables_and_the_storages_own_are_honoured() -> None:
    application = load_application(
        None,
        {
            "SW_CORE_ENABLE_DATA_KEEPER_EXECUTOR": "false",
            "SW_CORE_DATA_KEEPER_EXECUTE_PERIOD": "1",
            "SKYFARER_STORAGE_DUCKDB_METRICS_DATA_TTL": "30",
        },
    )
    core, storage = application.config(CoreConfig), application.config(DuckDBConfig)
    assert (core.enableDataKeeperExecutor, core.dataKeeperExecutePeriod) == (False, 1)
    assert (storage.recordDataTTL, storage.metricsDataTTL) == (None, 30)


def test_every_oap_with_a_storage_has_a_keeper_without_a_word_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "application.yml"
    shipped = [provider.module.name for provider in construct(load_application(None, {}))]
    assert "ttl" in shipped
    assert shipped.index("storage") < shipped.index("ttl") < shipped.index("agent-analyzer")
    file.write_text("core:\n  selector: default\ncluster:\n  selector: standalone\n")
    names = [provider.module.name for provider in construct(load_application(file, {}))]
    assert names == ["cluster", "core"]


@pytest.mark.parametrize("enabled", [True, False])
def test_it_runs_alone_and_shows_its_ages(tmp_path: Path, enabled: bool) -> None:
    config = CoreConfig(
        gRPCPort=0,
        dataDirectory=tmp_path,
        metricsDataTTL=9,
        enableDataKeeperExecutor=enabled,
    )
    core, ttl = CoreProvider(config), TtlProvider(config)
    storage = DuckDBProvider(DuckDBConfig(recordDataTTL=5))
    modules = Modules([StandaloneProvider(NoKeys()), core, storage, ttl])
    modules.start()
    try:
        desk: TtlDesk = ttl._desk
        *models, common = desk.planning({})
        first = common["first_days"]
        assert (models, common["why"]) == ([], "")
        assert first["record"] > first["metrics"]
        assert list(desk.running({})) == [{"outcome": "clean", "why": "", "left": 0}]
        shown = core.node.registry.render()
        assert 'ttl_runs_total{outcome="clean"} 1' in shown
        if enabled:
            eventually(
                lambda: "ttl_last_success_age_seconds " in core.node.registry.render(),
                30,
                "the keeper shows how it is",
            )
    finally:
        assert modules.stop(30) == []


def test_a_desk_without_a_keeper_says_so(tmp_path: Path) -> None:
    door = Door(tmp_path, TtlDesk().verbs)
    door.start()
    with pytest.raises(PermanentError, match="this OAP is still starting; ask it again"):
        list(ask(tmp_path, {"ask": "ttl.plan"}))
    with pytest.raises(PermanentError, match='"force" must be true or false'):
        list(ask(tmp_path, {"ask": "ttl.run", "force": 1}))
    door.stop(10)

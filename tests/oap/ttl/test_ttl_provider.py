"""The keeper as a module of the OAP, and its settings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from contracts.storage_contract import batch, segment
from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.oap.admin.door import Door, ask
from skyfarer.oap.admin.ttl import TtlDesk
from skyfarer.oap.boot.config import construct, load_application
from skyfarer.oap.boot.providers.cluster import StandaloneProvider
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.providers.storage import DuckDBProvider
from skyfarer.oap.boot.providers.ttl import TtlProvider
from skyfarer.oap.boot.settings import CoreConfig, DuckDBConfig, NoKeys
from skyfarer.oap.core.expiry import LEASE_S_MAX
from skyfarer.oap.core.modules import Modules
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.ttl.keeper import LEASE
from skyfarer.telemetry.http import TelemetryServer
from skyfarer.testing.programs import eventually

DAY_MS = 86_400_000
WAIT_S = 240.0
PERIOD_S = 0.2
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
        eventually(
            lambda: "ttl_last_success_age_seconds " in core.node.registry.render(),
            30,
            "the keeper shows how it is",
        )
    finally:
        assert modules.stop(30) == []


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A directory with the file of an OAP that has expired days, today and yesterday."""
    storage, now_ms = EmbeddedStorage(), SystemClock().now_ms()
    storage.start(
        tmp_path / "storage" / "skyfarer.duckdb", datetime.now().astimezone().tzinfo or UTC
    )
    for first, days_ago in enumerate((20, 19, 1, 0)):
        storage.apply(batch(first, first + 1, [segment(f"s{first}", now_ms - days_ago * DAY_MS)]))
    assert storage.take_lease(LEASE, "another", LEASE_S_MAX)
    storage.stop()
    return tmp_path


@contextmanager
def oap(directory: Path, enabled: bool) -> Iterator[tuple[EmbeddedStorage, str]]:
    """Core, storage and the keeper as an OAP has them, whose minutes are short, and the address of
    its telemetry."""
    config = CoreConfig(
        gRPCPort=0,
        dataDirectory=directory,
        dataKeeperExecutePeriod=1,
        enableDataKeeperExecutor=enabled,
    )
    core, storage = CoreProvider(config), DuckDBProvider(DuckDBConfig())
    modules = Modules([StandaloneProvider(NoKeys()), core, storage, TtlProvider(config, PERIOD_S)])
    modules.start()
    try:
        with telemetry(core) as address:
            yield storage._storage, address
    finally:
        assert modules.stop(60) == []


@contextmanager
def telemetry(core: CoreProvider) -> Iterator[str]:
    """As `telemetry.prometheus` serves it, which asks for an analysis, and so for Spark."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = TelemetryServer("127.0.0.1", 0, core.node.registry, core.node.health)
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(WAIT_S)
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(WAIT_S), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


def health(address: str) -> tuple[int, Any]:
    answer = httpx.get(f"{address}/healthcheck", trust_env=False, timeout=WAIT_S)
    return answer.status_code, answer.json()


def test_t02_the_timer_deletes_by_itself_and_healthcheck_says_when_it_cannot(filled: Path) -> None:
    """Another process has the lease, and seems to be dead with it."""
    with oap(filled, enabled=True) as (storage, address):
        eventually(
            lambda: "another node holds the lease" in health(address)[1]["details"],
            *(WAIT_S, "three periods without a deletion"),
        )
        status, body = health(address)
        assert (status, body["score"]) == (503, 1)
        assert body["details"].startswith("ttl: nothing expired was deleted for ")
        before = storage.day_tables()
        assert storage.take_lease(LEASE, "another", 0)
        eventually(lambda: health(address)[0] == 200, WAIT_S, "the timer has deleted")
        gone = set(before) - set(storage.day_tables())
        assert gone == {one for one in before if one.day < min(_kept_days())}


def test_a_node_that_is_told_to_delete_nothing_shows_what_there_is_all_the_same(
    filled: Path,
) -> None:
    with oap(filled, enabled=False) as (storage, address):
        before = storage.day_tables()
        assert storage.take_lease(LEASE, "another", 0)

        def shown() -> list[str]:
            return httpx.get(f"{address}/metrics", trust_env=False, timeout=WAIT_S).text.split("\n")

        eventually(lambda: "ttl_expired_tables 4" in shown(), WAIT_S, "it looks")
        ages = [line for line in shown() if line.startswith("oldest_data_age_seconds{")]
        assert len(ages) == 1 and float(ages[0].split()[-1]) > 19 * DAY_MS / 1000
        storage.apply(batch(4, 5, [segment("more", SystemClock().now_ms() - 18 * DAY_MS)]))
        eventually(lambda: "ttl_expired_tables 6" in shown(), WAIT_S, "it looks again")

        def overdue() -> bool:
            age = next(line for line in shown() if line.startswith("ttl_last_success_age_seconds "))
            return float(age.split()[-1]) > 10 * PERIOD_S

        eventually(overdue, WAIT_S, "nothing goes")
        assert health(address) == (200, {"score": 0, "details": ""}), "and nobody is alarmed"
        assert set(before) < set(storage.day_tables())


def _kept_days() -> list[int]:
    now = datetime.now()
    return [int((now - timedelta(days=ago)).strftime("%Y%m%d")) for ago in (0, 1, 2)]


def test_a_desk_without_a_keeper_says_so(tmp_path: Path) -> None:
    door = Door(tmp_path, TtlDesk().verbs)
    door.start()
    with pytest.raises(PermanentError, match="this OAP is still starting; ask it again"):
        list(ask(tmp_path, {"ask": "ttl.plan"}))
    with pytest.raises(PermanentError, match='"force" must be true or false'):
        list(ask(tmp_path, {"ask": "ttl.run", "force": 1}))
    door.stop(10)

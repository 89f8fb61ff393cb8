from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from contracts.metrics_contract import MetricsContract, address, aliases_of, only
from contracts.storage_contract import MINUTE, batch, delta
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ADDRESS_ALIAS
from skyfarer.oap.storage.embedded import EmbeddedStorage


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[EmbeddedStorage]:
    storage = EmbeddedStorage()
    storage.start(tmp_path / "skyfarer.duckdb", UTC)
    yield storage
    storage.stop()


class TestEmbeddedMetrics(MetricsContract):
    pass


def test_an_entity_has_one_row_a_bucket(storage: EmbeddedStorage) -> None:
    for number in range(3):
        rows = [delta(MINUTE + n, service=f"s{n % 2}") for n in range(4)]
        storage.apply(batch(number, number + 1, deltas=rows))
    repeated = storage._cursor().execute(
        """SELECT entity_id, time_bucket, count(*), sum(calls) FROM metrics_service_20261115
        GROUP BY ALL ORDER BY ALL"""
    )
    rows = repeated.fetchall()
    assert {count for _, _, count, _ in rows} == {1}
    assert [calls for *_, calls in rows] == [6, 6, 3, 3] * 2


def test_aliases_are_read_again_only_when_one_has_changed(storage: EmbeddedStorage) -> None:
    claims = [address(MINUTE, "b:80", "bank", "b"), address(MINUTE + 1, "b:80", "bank", "b")]
    storage.apply(batch(0, 1, metrics=only(ADDRESS_ALIAS, claims[0])))
    read = storage.aliases()
    storage.apply(batch(1, 2, metrics=only(ADDRESS_ALIAS, claims[1])))
    assert storage.aliases() is read
    storage.apply(batch(2, 3, metrics=only(ADDRESS_ALIAS, address(MINUTE + 2, "b:80", "x", "y"))))
    assert aliases_of(storage) == {"b:80": ("x", "y")}


def test_aliases_are_those_of_the_file_that_is_open(tmp_path: Path) -> None:
    storage = EmbeddedStorage()
    storage.start(tmp_path / "one.duckdb", UTC)
    claim = address(MINUTE, "b:80", "bank", "b")
    storage.apply(batch(0, 1, metrics=only(ADDRESS_ALIAS, claim)))
    assert aliases_of(storage) != {}
    storage.stop()
    with pytest.raises(PermanentError, match="not started"):
        storage.aliases()
    storage.start(tmp_path / "two.duckdb", UTC)
    assert aliases_of(storage) == {}
    storage.stop()

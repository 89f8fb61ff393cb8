from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from contracts.metrics_contract import MetricsContract, address, aliases_of, only
from contracts.storage_contract import BUCKET, MINUTE, batch, delta, segment
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ADDRESS_ALIAS
from skyfarer.oap.storage import seen
from skyfarer.oap.storage.embedded import EmbeddedStorage, metrics


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


def test_more_rows_than_there_may_be_are_refused(
    storage: EmbeddedStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.apply(batch(0, 1, deltas=[delta(service=f"s{n}") for n in range(3)]))
    assert storage.rows("Service", ["calls"], BUCKET, BUCKET).num_rows == 3
    monkeypatch.setattr(metrics, "ROWS_MAX", 2)
    with pytest.raises(PermanentError, match="shorter time"):
        storage.rows("Service", ["calls"], BUCKET, BUCKET)


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


def test_more_rows_than_are_remembered_change_nothing(
    storage: EmbeddedStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "KEYS_MAX", 3)
    shop = ids.service_id("shop")
    for number in range(4):
        rows = [delta(MINUTE + number % 2, endpoint=f"/{n}") for n in range(number + 1)]
        storage.apply(batch(number, number + 1, deltas=rows))
    assert len(storage.endpoints(shop, "", 9)) == 4
    assert len(storage.instances(shop, BUCKET + 1, BUCKET + 1)) == 1


def test_names_of_every_kind_have_the_ids_of_the_protocol(storage: EmbeddedStorage) -> None:
    names = ["", " ", "\t\n", "\u2003", "é", " é", "\x7f", "a", "'"]
    rows = [segment(f"s{n}", service=name, endpoint=name) for n, name in enumerate(names)]
    storage.apply(batch(0, 1, rows, [delta(service=name) for name in names]))
    query = "SELECT service_id, endpoint_id FROM segment_20261115 ORDER BY segment_id"
    expected = [(made := ids.service_id(name), ids.endpoint_id(made, name)) for name in names]
    assert storage._cursor().execute(query).fetchall() == expected
    assert {s.id for s in storage.services(None)} == {made for made, _ in expected}

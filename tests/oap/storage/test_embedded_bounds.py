"""Every read of the embedded storage has an end, however long it would take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path

import pytest

from contracts.storage_contract import batch, delta
from skyfarer.base.errors import RetryableError
from skyfarer.oap.core import ids
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.parked import ParkedQuery
from skyfarer.oap.core.storage import Parked
from skyfarer.oap.storage.embedded import EmbeddedStorage

SHOP = ids.service_id("shop")
DAY = 202611150000, 202611152359
READS: dict[str, tuple[str, Callable[[EmbeddedStorage], object]]] = {
    "services": ("service_traffic", lambda one: one.services(None)),
    "instances": ("instance_traffic", lambda one: one.instances(SHOP, *DAY)),
    "endpoints": ("endpoint_traffic", lambda one: one.endpoints(SHOP, "", 9)),
    "parked": ("parked_record", lambda one: one.parked("queue-a")),
    "parked_entries": ("parked_record", lambda one: one.parked_entries(ParkedQuery())),
    "progress": ("source_offset", lambda one: one.progress("queue-a")),
    "inventories_since": (
        "service_inventory",
        lambda one: one.inventories_since(InventoryScope.SERVICE, 0, 9),
    ),
    "inventories_found": (
        "service_inventory",
        lambda one: one.inventories_found(InventoryScope.SERVICE, "", 0, 9),
    ),
    "aliases": ("network_address_alias", lambda one: one.aliases()),
}


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[EmbeddedStorage]:
    storage = EmbeddedStorage()
    storage.start(tmp_path / "skyfarer.duckdb", UTC)
    yield storage
    storage.stop()


@pytest.mark.parametrize("name", READS)
def test_a_read_without_an_end_is_ended(storage: EmbeddedStorage, name: str) -> None:
    table, read = READS[name]
    storage.apply(
        batch(
            *(0, 2, [], [delta()]),
            parked=[Parked(1, 1, "undecodable", b"")],
            inventories=[Inventory(InventoryScope.SERVICE, "shop")],
        )
    )
    read(storage)
    storage._aliases_changed()
    make_endless(storage, table)
    storage._read_timeout_s = 0.2
    with pytest.raises(RetryableError, match=r"searched for 0\.2 s without an end"):
        read(storage)


def make_endless(storage: EmbeddedStorage, table: str) -> None:
    """Its rows never end: each is there ten million million times."""
    with storage._transaction() as cursor:
        cursor.execute(f"CREATE TABLE kept AS FROM {table}")
        cursor.execute(f"DROP TABLE {table}")
        cursor.execute(
            f"""CREATE VIEW {table} AS SELECT kept.* FROM range(10_000_000) AS a,
            range(10_000_000) AS b LEFT JOIN kept ON true"""
        )

"""The bounds of what the answers remember."""

from __future__ import annotations

from dataclasses import replace

from oap.receivers.answers.shelf import Shelf
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.receivers.answers.lru import Lru
from skyfarer.oap.receivers.answers.names import READ_MAX, RECENT_S, REFRESH_S, WANTED_S, Names
from skyfarer.testing.clock import HandClock

SERVICE = InventoryScope.SERVICE


def service(name: str) -> Inventory:
    return Inventory(SERVICE, name, properties='{"a": "b"}')


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    lru = Lru[str, int](2)
    lru.put("a", 1)
    lru.put("b", 2)
    assert lru.get("a") == 1
    lru.put("c", 3)
    assert [lru.get(key) for key in "abc"] == [1, None, 3]


def test_what_was_found_once_is_not_read_again_by_name_or_by_id() -> None:
    shelf = Shelf()
    names = Names(shelf, HandClock())
    shelf.store(service("shop"))
    assert names.find(SERVICE, ["shop_0_0"])["shop_0_0"].sequence == 2
    reads = shelf.reads
    assert names.find(SERVICE, ["shop_0_0"])["shop_0_0"].sequence == 2
    assert names.find_by_id(SERVICE, [2])[2].name == "shop"
    assert shelf.reads == reads


def test_an_id_that_does_not_exist_is_asked_of_storage_once_until_it_changes() -> None:
    shelf = Shelf()
    names = Names(shelf, HandClock())
    for _ in range(1000):
        assert not names.find_by_id(SERVICE, [2, 0, -1])
    assert shelf.reads == 1
    shelf.store(service("shop"))
    names.changed()
    assert names.find_by_id(SERVICE, [2])[2].name == "shop"


def test_a_change_of_storage_is_looked_at_in_few_reads_for_all_who_wait() -> None:
    shelf = Shelf()
    names = Names(shelf, HandClock())
    wanted = names.wanted([service(f"shop-{number}") for number in range(3 * READ_MAX)])
    shelf.store(*wanted)
    reads = shelf.reads
    names.changed()
    assert shelf.reads == reads + 3
    found = names.find(SERVICE, [f"shop-{number}_0_0" for number in range(3 * READ_MAX)])
    assert len(found) == 3 * READ_MAX
    assert shelf.reads == reads + 3


def test_names_that_never_get_an_id_are_looked_for_no_longer_than_a_while() -> None:
    shelf, clock = Shelf(), HandClock()
    names = Names(shelf, clock)
    names.wanted([service("shop")])
    clock.seconds += WANTED_S
    names.changed()
    assert shelf.reads == 0


def test_a_cached_row_follows_what_another_node_wrote_of_it() -> None:
    shelf, clock = Shelf(), HandClock(1_700_000_000_000)
    names = Names(shelf, clock)
    shelf.store(service("shop"))
    assert names.find(SERVICE, ["shop_0_0"])["shop_0_0"].node_type == 0
    told = Inventory(SERVICE, "shop", node_type=3, heartbeat_time=clock.now_ms())
    shelf.store(told, replace(told, name="nobody asked for it"))
    names.changed()
    assert names.find(SERVICE, ["shop_0_0"])["shop_0_0"].node_type == 0
    clock.seconds += REFRESH_S
    names.changed()
    reads = shelf.reads
    assert names.find(SERVICE, ["shop_0_0"])["shop_0_0"].node_type == 3
    assert shelf.reads == reads
    names.find(SERVICE, ["nobody asked for it_0_0"])
    assert shelf.reads == reads + 1, "what nobody asked for is not cached"


def test_rows_that_did_not_change_lately_are_not_read_again() -> None:
    shelf, clock = Shelf(), HandClock(1_700_000_000_000)
    names = Names(shelf, clock)
    shelf.store(service("shop"))
    names.find(SERVICE, ["shop_0_0"])
    at_ms = clock.now_ms()
    clock.seconds += RECENT_S + 1
    shelf.store(Inventory(SERVICE, "shop", node_type=3, heartbeat_time=at_ms))
    names.changed()
    assert names.find(SERVICE, ["shop_0_0"])["shop_0_0"].node_type == 0

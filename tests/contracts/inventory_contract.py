"""What every storage provider must do with inventories: part of the storage contract."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyfarer.oap.core import ids
from skyfarer.oap.core.capabilities import Capability
from skyfarer.oap.core.inventory import FIRST_ID, Inventory, InventoryScope, combine, row_id
from skyfarer.oap.core.storage import Analysed, Heartbeat

SERVICE, INSTANCE = InventoryScope.SERVICE, InventoryScope.SERVICE_INSTANCE
ENDPOINT, ADDRESS = InventoryScope.ENDPOINT, InventoryScope.NETWORK_ADDRESS
NOON = 1_794_744_000_000
BUCKET = 202611151200
ONE_OF_EACH = [
    Inventory(SERVICE, "shop", node_type=2, properties="{}", heartbeat_time=5, register_time=4),
    Inventory(INSTANCE, "shop-pid:1@é", 2, "ab", properties='{"a": "1"}', heartbeat_time=5),
    Inventory(ENDPOINT, "/pay", 2, detect_point=1, register_time=3, heartbeat_time=3),
    Inventory(ADDRESS, "10.0.0.1:80", node_type=1, register_time=3, heartbeat_time=3),
]


def registering(
    first: int, inventories: Sequence[Inventory], heartbeats: Sequence[Heartbeat] = ()
) -> Analysed:
    """A batch of one record that brings them."""
    nothing = {"segment_id": pa.string(), "minute": pa.int64()}
    return Analysed(
        partition="queue-a",
        first=first,
        end=first + 1,
        segments=pa.schema(nothing).empty_table(),
        metrics={},
        inventories=inventories,
        heartbeats=heartbeats,
    )


def apply(storage: Any, *batches: Sequence[Inventory]) -> None:
    for inventories in batches:
        storage.apply(registering(storage.applied("queue-a"), inventories))


def read(storage: Any, *inventories: Inventory) -> list[Inventory]:
    """Their rows, in their order, where they have one."""
    found = [storage.inventories(i.scope, [row_id(i)]).get(row_id(i)) for i in inventories]
    return [row for row in found if row is not None]


def told(storage: Any, name: str) -> str:
    """As it is read again."""
    lossy = Capability.ANY_CHARACTER in storage.lacks
    return name.replace("\x00", "\ufffd") if lossy else name


class InventoryContract:
    def test_every_scope_hands_out_its_first_id_as_two(self, storage: Any) -> None:
        assert read(storage, *ONE_OF_EACH) == []
        apply(storage, ONE_OF_EACH)
        assert read(storage, *ONE_OF_EACH) == [replace(i, sequence=FIRST_ID) for i in ONE_OF_EACH]
        assert FIRST_ID == 2

    def test_a_row_is_found_by_its_id_too(self, storage: Any) -> None:
        apply(storage, ONE_OF_EACH)
        for inventory in ONE_OF_EACH:
            row = replace(inventory, sequence=2)
            assert storage.inventories_by_id(inventory.scope, [2, 3, 0, -1]) == {2: row}

    def test_nothing_wanted_is_nothing_found(self, storage: Any) -> None:
        apply(storage, ONE_OF_EACH, [])
        assert storage.inventories(SERVICE, []) == {}
        assert storage.inventories_by_id(SERVICE, []) == {}

    def test_what_changed_lately_is_found_by_the_time_of_its_change(self, storage: Any) -> None:
        old = Inventory(SERVICE, "old", register_time=100, heartbeat_time=900)
        told = Inventory(SERVICE, "told", node_type=1, register_time=100, heartbeat_time=300)
        mapped = Inventory(SERVICE, "mapped", mapping_service_id=2, mapping_time=500)
        young = Inventory(SERVICE, "young", register_time=400)
        apply(storage, [old, told, mapped, young])

        def since(time_ms: int, limit: int = 10) -> list[str]:
            return sorted(one.name for one in storage.inventories_since(SERVICE, time_ms, limit))

        assert since(300) == ["mapped", "told", "young"]
        assert since(400) == ["mapped", "young"]
        assert since(0, limit=1) == ["mapped"]
        assert since(501) == []
        for inventory in ONE_OF_EACH:
            assert storage.inventories_since(inventory.scope, 1 << 60, 10) == []

    def test_names_are_found_by_a_part_of_them_in_the_order_of_their_ids(
        self, storage: Any
    ) -> None:
        names = ["Shop", "cart", "SHOPPING", "100%_a'b", told(storage, "\x00"), "ωshop"]
        apply(storage, [Inventory(SERVICE, name) for name in names])

        def found(keyword: str, offset: int = 0, limit: int = 10) -> list[str]:
            rows = storage.inventories_found(SERVICE, keyword, offset, limit)
            assert [row.sequence for row in rows] == sorted(row.sequence for row in rows)
            return [row.name for row in rows]

        assert found("") == names
        assert found("shop") == found("SHOP") == ["Shop", "SHOPPING", "ωshop"]
        assert found("%_a'") == ["100%_a'b"]
        assert found("s%p") == found("nobody") == []
        assert found("", offset=1, limit=2) == ["cart", "SHOPPING"]
        assert found("", offset=9) == []
        assert storage.inventories_found(ENDPOINT, "", 0, 10) == []

    def test_ids_go_on_from_batch_to_batch_and_belong_to_one_thing(self, storage: Any) -> None:
        names = [f"s{number}" for number in range(40)]
        apply(storage, *([Inventory(SERVICE, name)] for name in names[:3]))
        apply(storage, [Inventory(SERVICE, name) for name in names])
        keys = [row_id(Inventory(SERVICE, name)) for name in names]
        found = storage.inventories(SERVICE, [*keys, "nobody_0_0"])
        assert {key: row.name for key, row in found.items()} == dict(zip(keys, names, strict=True))
        assert sorted(row.sequence for row in found.values()) == list(range(2, 42))
        assert [found[key].sequence for key in keys[:3]] == [2, 3, 4]

    def test_a_registration_repeated_keeps_its_id_and_takes_no_other(self, storage: Any) -> None:
        shop = Inventory(SERVICE, "shop", register_time=1, heartbeat_time=1)
        again = replace(shop, register_time=9, heartbeat_time=9)
        apply(storage, [shop], [again], [shop], [again, Inventory(SERVICE, "cart")])
        assert read(storage, shop) == [replace(shop, heartbeat_time=9, sequence=2)]
        assert [row.sequence for row in read(storage, Inventory(SERVICE, "cart"))] == [3]

    def test_two_of_one_row_in_a_batch_are_one(self, storage: Any) -> None:
        name = Inventory(SERVICE, "10.0.0.1:80", is_address=True, address_id=2)
        other = replace(name, name="10.0.0.2:80")
        apply(storage, [name, other, other])
        assert read(storage, name) == [replace(other, sequence=2)]
        assert storage.inventories_by_id(SERVICE, [3]) == {}

    def test_a_service_and_that_of_an_address_of_its_name_are_two(self, storage: Any) -> None:
        plain = Inventory(SERVICE, "10.0.0.1:80")
        address = replace(plain, is_address=True, address_id=2)
        apply(storage, [plain, address])
        assert [row.sequence for row in read(storage, plain, address)] == [2, 3]

    @pytest.mark.parametrize("name", ["", "it's", "a\x00b", "шоп%_", '"; DROP TABLE x; --'])
    def test_a_name_may_be_anything(self, storage: Any, name: str) -> None:
        every = [Inventory(scope, name, uuid=name) for scope in InventoryScope]
        apply(storage, every)
        expected = [(told(storage, name), 2)] * 4
        assert [(row.name, row.sequence) for row in read(storage, *every)] == expected

    @settings(
        max_examples=15,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,  # every storage runs it, on examples of its own
        ],
    )
    @given(
        st.lists(
            st.builds(
                Inventory,
                scope=st.sampled_from([SERVICE, ADDRESS]),
                name=st.sampled_from("ab"),
                node_type=st.integers(0, 2),
                register_time=st.integers(0, 3),
                heartbeat_time=st.integers(0, 3),
            ),
            max_size=12,
        ),
        st.integers(1, 4),
    )
    def test_rows_are_what_combining_all_records_gives(
        self, storage: Any, records: list[Inventory], size: int
    ) -> None:
        run = str(storage.applied("queue-a"))
        records = [replace(record, name=run + record.name) for record in records]
        apply(storage, *(records[at : at + size] for at in range(0, len(records), size)))
        for key, of_key in _by_key(records).items():
            (row,) = read(storage, of_key[0])
            assert row == replace(reduce(combine, of_key), sequence=row.sequence), key

    def test_a_batch_that_fails_registers_nothing(self, storage: Any) -> None:
        apply(storage, [Inventory(SERVICE, "shop")])
        broken = Heartbeat("shop", "i", "GENERAL", 2**50, None)
        with pytest.raises(Exception, match=r"(?i)range|year|overflow"):
            storage.apply(registering(1, [Inventory(SERVICE, "cart")], [broken]))
        assert read(storage, Inventory(SERVICE, "cart")) == []
        apply(storage, [Inventory(SERVICE, "desk")])
        (desk,) = read(storage, Inventory(SERVICE, "desk"))
        assert desk.sequence > 2
        assert set(storage.inventories_by_id(SERVICE, range(9))) == {2, desk.sequence}

    def test_who_reads_while_ids_are_given_sees_whole_batches_that_never_change(
        self, storage: Any
    ) -> None:
        batches = [[Inventory(SERVICE, f"{n}-{i}") for i in range(20)] for n in range(15)]
        keys = [[row_id(inventory) for inventory in batch] for batch in batches]
        done, wrong = threading.Event(), []

        def watch() -> None:
            seen: dict[str, int] = {}
            while not done.is_set():
                for of_batch in keys:
                    found = storage.inventories(SERVICE, of_batch)
                    now = {key: row.sequence for key, row in found.items()}
                    if len(now) not in (0, 20) or any(seen.get(k, s) != s for k, s in now.items()):
                        wrong.append(now)
                    seen |= now

        watching = [threading.Thread(target=watch) for _ in range(2)]
        for thread in watching:
            thread.start()
        apply(storage, *batches)
        done.set()
        for thread in watching:
            thread.join()
        assert wrong == []
        found = storage.inventories(SERVICE, [key for of_batch in keys for key in of_batch])
        assert sorted(row.sequence for row in found.values()) == list(range(2, 302))

    def test_a_registered_instance_is_listed_with_what_it_told_of_itself(
        self, storage: Any
    ) -> None:
        told = json.dumps({"language": "nodejs", "os_name": "linux", "ipv4s": ["10.0.0.1"]})
        at = {"register_time": NOON, "heartbeat_time": NOON}
        instance = Inventory(INSTANCE, "shop-pid:1", 2, "ab", properties=told, **at)
        apply(storage, [instance, Inventory(SERVICE, "shop", **at)])
        shop = ids.service_id("shop")
        assert [service.id for service in storage.services("GENERAL")] == [shop]
        (listed,) = storage.instances(shop, BUCKET, BUCKET)
        assert (listed.name, listed.language) == ("shop-pid:1", "NODEJS")
        assert listed.attributes == (("ipv4s", '["10.0.0.1"]'), ("os_name", "linux"))
        alive = Inventory(INSTANCE, "", 2, "ab", heartbeat_time=NOON + 7 * 60_000)
        apply(storage, [alive])
        (again,) = storage.instances(shop, BUCKET + 7, BUCKET + 9)
        assert again == listed

    @pytest.mark.parametrize(
        "instance",
        [
            Inventory(INSTANCE, "of nobody", 9, "ab", heartbeat_time=NOON),
            Inventory(INSTANCE, "", 2, "nameless", heartbeat_time=NOON),
            Inventory(INSTANCE, "never alive", 2, "ab"),
            Inventory(INSTANCE, "in no calendar", 2, "ab", heartbeat_time=2**62),
            Inventory(INSTANCE, "1.1.1.1:1", 2, is_address=True, address_id=2, heartbeat_time=NOON),
            Inventory(INSTANCE, "of an address", 3, "ab", heartbeat_time=NOON),
        ],
    )
    def test_an_instance_that_cannot_be_listed_is_registered_all_the_same(
        self, storage: Any, instance: Inventory
    ) -> None:
        address = Inventory(SERVICE, "1.1.1.1:1", is_address=True, address_id=2)
        apply(storage, [Inventory(SERVICE, "shop"), address], [instance])
        assert [row.sequence for row in read(storage, instance)] == [2]
        assert storage.services(None) == []

    @pytest.mark.parametrize("text", ["not json", "[1]", '"a"', "[" * 40_000])
    def test_properties_that_are_none_stop_nothing(self, storage: Any, text: str) -> None:
        instance = Inventory(INSTANCE, "i", 2, "ab", properties=text, heartbeat_time=NOON)
        apply(storage, [Inventory(SERVICE, "shop"), instance])
        assert [row.properties for row in read(storage, instance)] == [text]
        (listed,) = storage.instances(ids.service_id("shop"), BUCKET, BUCKET)
        assert listed.attributes == ()


def _by_key(records: list[Inventory]) -> dict[tuple[InventoryScope, str], list[Inventory]]:
    found: dict[tuple[InventoryScope, str], list[Inventory]] = {}
    for record in records:
        found.setdefault((record.scope, row_id(record)), []).append(record)
    return found

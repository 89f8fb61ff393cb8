"""Row ids, equality and combining of inventories, held against the tables of SkyWalking 6.2.0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.core.inventory import Inventory, InventoryScope, combine, identity, row_id

SERVICE, INSTANCE = InventoryScope.SERVICE, InventoryScope.SERVICE_INSTANCE
ENDPOINT, ADDRESS = InventoryScope.ENDPOINT, InventoryScope.NETWORK_ADDRESS

# Few of each, so that equal ones and ties come up.
NAMES = st.sampled_from(["", "1", "a", "a_0_0", "1_2", "é\x00"])
IDS = st.integers(0, 3)
TIMES = st.integers(0, 4)


def of_scope(scope: InventoryScope) -> st.SearchStrategy[Inventory]:
    return st.builds(
        Inventory,
        scope=st.just(scope),
        name=NAMES,
        service_id=IDS,
        uuid=NAMES,
        is_address=st.booleans(),
        address_id=IDS,
        node_type=st.integers(-1, 2),
        detect_point=st.integers(0, 2),
        properties=st.sampled_from(["", '{"a": "1"}', '{"b": "2"}']),
        mapping_service_id=IDS,
        mapping_time=TIMES,
        register_time=TIMES,
        heartbeat_time=TIMES,
    )


ANY = st.sampled_from(InventoryScope).flatmap(of_scope)


@st.composite
def of_one_row(draw: st.DrawFn, at_least: int = 2) -> list[Inventory]:
    """Different records of one row."""
    first = draw(ANY)
    names = ("scope", "name", "service_id", "uuid", "is_address", "address_id", "detect_point")
    key = {name: getattr(first, name) for name in names}
    others = st.lists(of_scope(first.scope), min_size=at_least - 1, max_size=4)
    return [first, *(replace(other, **key) for other in draw(others))]


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        (Inventory(SERVICE, "shop"), "shop_0_0"),
        (Inventory(SERVICE, "10.0.0.1:80", is_address=True, address_id=7), "1_7"),
        (Inventory(INSTANCE, "shop-pid:1@host", 2, uuid="ab"), "2_ab_0_0"),
        (Inventory(INSTANCE, "10.0.0.1:80", 3, is_address=True, address_id=7), "3_1_7"),
        (Inventory(ENDPOINT, "/pay", 2, detect_point=1), "2_/pay_1"),
        (Inventory(ADDRESS, "10.0.0.1:80"), "10.0.0.1:80"),
    ],
)
def test_a_row_id_is_spelled_as_in_the_original(inventory: Inventory, expected: str) -> None:
    assert row_id(inventory) == expected


@pytest.mark.parametrize(
    ("scope", "fields"),
    [
        (SERVICE, {"name", "is_address", "address_id"}),
        (INSTANCE, {"service_id", "uuid", "is_address", "address_id"}),
        (ENDPOINT, {"service_id", "name", "detect_point"}),
        (ADDRESS, {"name"}),
    ],
)
def test_equality_is_by_the_originals_fields_alone(scope: InventoryScope, fields: set[str]) -> None:
    mine = Inventory(scope)
    others = {
        field: replace(mine, **{field: "x" if isinstance(value, str) else 1})
        for field, value in vars(mine).items()
        if field != "scope"
    }
    assert {field for field, other in others.items() if identity(other) != identity(mine)} == fields


def test_the_same_name_in_two_scopes_is_two_things() -> None:
    assert len({identity(Inventory(scope)) for scope in InventoryScope}) == len(InventoryScope)


@given(ANY, ANY)
def test_what_is_equal_has_one_row_and_a_row_is_of_one_thing(a: Inventory, b: Inventory) -> None:
    b = replace(b, scope=a.scope)
    if identity(a) == identity(b):
        assert row_id(a) == row_id(b)
    if row_id(a) == row_id(b):
        assert _key(a) == _key(b)


def _key(inventory: Inventory) -> tuple[object, ...]:
    """What makes a thing itself: an address's parts go by its id, plain ones by their names."""
    part = inventory.scope in (SERVICE, INSTANCE)
    if part and inventory.is_address:
        owner = inventory.service_id if inventory.scope is INSTANCE else 0
        return "address", owner, inventory.address_id
    plain = replace(inventory, address_id=0) if part else inventory
    return identity(plain)


@given(of_one_row(), st.sampled_from(["", "z"]), IDS)
def test_records_of_one_row_that_are_not_equal_combine_all_the_same(
    records: list[Inventory], name: str, number: int
) -> None:
    a, b = records[:2]
    if a.scope in (SERVICE, INSTANCE):
        left_out = {"name": name, "uuid": name} if a.is_address else {"address_id": number}
        b = replace(b, **left_out)
    assert row_id(combine(a, b)) == row_id(a) == row_id(b)
    assert combine(a, b) == combine(b, a)


@given(of_one_row(3))
def test_order_and_repetition_of_records_do_not_matter(records: list[Inventory]) -> None:
    whole = reduce(combine, records)
    for order in permutations(records[:3]):
        assert reduce(combine, [*order, *records[3:], *order]) == whole
    assert combine(whole, whole) == whole
    assert identity(whole) == identity(records[0])


@given(of_one_row(3), st.integers(1, 2))
def test_parts_combined_apart_say_the_same_together(records: list[Inventory], cut: int) -> None:
    halves = reduce(combine, records[:cut]), reduce(combine, records[cut:])
    assert combine(*halves) == reduce(combine, records)


@given(of_one_row())
def test_the_times_of_a_row_are_its_first_and_its_last(records: list[Inventory]) -> None:
    whole = reduce(combine, records)
    assert whole.heartbeat_time == max(record.heartbeat_time for record in records)
    told = [record.register_time for record in records if record.register_time]
    assert whole.register_time == min(told, default=0)


@given(of_one_row())
def test_the_newest_to_say_something_is_believed(records: list[Inventory]) -> None:
    whole = reduce(combine, records)
    said = list(_said(records))
    newest = max((record.heartbeat_time for record in said), default=0)
    believed = [r for r in said if r.heartbeat_time == newest] or [Inventory(whole.scope)]
    pairs = [(record.properties, record.node_type) for record in believed]
    assert (whole.properties, whole.node_type) == max(pairs)
    assert whole.update_time == newest


def _said(records: list[Inventory]) -> Iterator[Inventory]:
    return (record for record in records if record.properties or record.node_type)


@given(of_one_row())
def test_the_newest_mapping_to_a_service_is_kept(records: list[Inventory]) -> None:
    whole = reduce(combine, records)
    mapped = [(r.mapping_time, r.mapping_service_id) for r in records if r.mapping_service_id]
    if mapped:
        assert (whole.mapping_time, whole.mapping_service_id) == max(mapped)
    else:
        assert whole.mapping_service_id == 0


def test_a_row_keeps_its_id_and_its_name_when_a_nameless_sign_of_life_comes() -> None:
    stored = Inventory(INSTANCE, "shop-pid:1", 2, "ab", properties="{}", heartbeat_time=5)
    stored = replace(stored, sequence=9, register_time=5)
    sign = Inventory(INSTANCE, "", 2, "ab", heartbeat_time=8)
    assert combine(stored, sign) == replace(stored, heartbeat_time=8)


def test_a_sign_of_life_that_comes_late_changes_nothing() -> None:
    stored = Inventory(SERVICE, "shop", node_type=1, register_time=3, heartbeat_time=5, sequence=2)
    assert combine(stored, Inventory(SERVICE, "shop", heartbeat_time=4)) == stored


def test_what_was_told_stays_told_at_its_time_whatever_signs_of_life_follow() -> None:
    first = Inventory(SERVICE, "shop", properties='{"a": "1"}', heartbeat_time=3)
    later = Inventory(SERVICE, "shop", properties='{"b": "2"}', heartbeat_time=5)
    alive = combine(first, Inventory(SERVICE, "shop", heartbeat_time=9))
    assert (alive.update_time, alive.heartbeat_time) == (3, 9)
    assert combine(alive, later).properties == later.properties

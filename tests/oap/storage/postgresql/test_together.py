"""Several nodes write to one database at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC

from contracts.metrics_contract import address, aliases_of, called, only
from contracts.shared_contract import SharedContract, at_once
from contracts.storage_contract import BUCKET, MINUTE, TABLE, batch, delta, deltas_of, segment
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ADDRESS_ALIAS, DetectPoint, Entity
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.storage import (
    Analysed,
    Deltas,
    Heartbeat,
    Merge,
    Parked,
)
from skyfarer.oap.storage.postgresql import PostgresStorage, schema

NODES, BATCHES, SERVICES = 4, 8, 5
MERGES = {"calls": Merge.SUM, "slowest": Merge.MAX, "kinds": Merge.SUM}
DAY = BUCKET // 10_000


def wide(node: int, number: int) -> Deltas:
    """Each node in an order of its own, as two that wait for each other would need it."""
    order = range(SERVICES) if node % 2 else reversed(range(SERVICES))
    rows = [
        delta(
            MINUTE, service=f"s{n}", calls=1, slowest=10 * node + number, kinds={"a": 1, f"{n}": 1}
        )
        for n in order
    ]
    return deltas_of(rows, MERGES, {"kinds": TABLE})


def of_node(node: int, number: int) -> Analysed:
    metrics = dict.fromkeys(("Service", "Endpoint", "ServiceInstance"), wide(node, number))
    metrics["ServiceRelation"] = deltas_of([called(component=node)], {"calls": Merge.SUM})
    metrics |= only(ADDRESS_ALIAS, address(MINUTE + number, f"{number}:80", f"s{node}", "i"))
    names = [Inventory(InventoryScope.SERVICE, f"n{n}") for n in range(number + 1)]
    one = batch(
        number,
        number + 1,
        [segment(f"{node}-{number}", tags=["k=v"])],
        metrics=metrics,
        inventories=names[::-1] if node % 2 else names,
        heartbeats=[
            Heartbeat("shop", f"i{n}", "GENERAL", MINUTE, {f"{node}": "x"}) for n in (0, 1)
        ],
        parked=[Parked(number, 1, "undecodable", b"")],
        dropped={"undecodable": 1},
    )
    return replace(one, partition=f"queue-{node}")


def node_of(conninfo: str, node: int) -> Callable[[], None]:
    """From its start on: the tables are made at the same time, too."""

    def live() -> None:
        storage = PostgresStorage(conninfo)
        storage.start(UTC)
        for number in range(BATCHES):
            storage.apply(of_node(node, number))
            if number % 3 == node % 3:
                storage.fold()
        storage.stop()

    return live


def test_a_node_starts_and_writes_while_another_is_in_the_middle_of_a_batch(conninfo: str) -> None:
    """Who has written into a table waits for nobody but whoever changes the same rows, and nobody
    waits for him: two that make the same tables, and write into them, would wait for each other."""
    first, second = PostgresStorage(conninfo), PostgresStorage(conninfo)
    first.start(UTC)
    first.apply(of_node(0, 0))
    with first._transaction() as cursor:
        for table in schema.present(cursor):
            cursor.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
        second.start(UTC)
        second.apply(of_node(1, 0))
    assert len(second.trace("t", 999, 999_999)) == 2
    first.stop()
    second.stop()


def test_nothing_is_lost_or_counted_twice_when_several_nodes_write_the_same_rows(
    conninfo: str,
) -> None:
    at_once(*(node_of(conninfo, node) for node in range(NODES)))
    storage = PostgresStorage(conninfo)
    storage.start(UTC)
    total = NODES * BATCHES
    for number in range(SERVICES):
        service = ids.service_id(f"s{number}")
        for bucket in (BUCKET, DAY):
            series = storage.series("Service", service, list(MERGES), bucket, bucket)
            kinds = {"a": total, f"{number}": total}
            slowest = 10 * (NODES - 1) + BATCHES - 1
            assert series == {bucket: {"calls": total, "slowest": slowest, "kinds": kinds}}
    assert [storage.applied(f"queue-{node}") for node in range(NODES)] == [BATCHES] * NODES
    (relation,) = storage.relations(Entity.SERVICE_RELATION, DetectPoint.SERVER, DAY, DAY)
    assert relation.components == tuple(range(NODES))
    names = storage.inventories(InventoryScope.SERVICE, [f"n{n}_0_0" for n in range(BATCHES)])
    assert sorted(row.sequence for row in names.values()) == list(range(2, BATCHES + 2))
    for instance in storage.instances(ids.service_id("shop"), BUCKET, BUCKET):
        if instance.name in ("i0", "i1"):
            assert instance.attributes == tuple((f"{node}", "x") for node in range(NODES))
    assert sorted(aliases_of(storage)) == sorted(f"{number}:80" for number in range(BATCHES))
    assert len(storage.trace("t", 999, 999_999)) == total
    storage.stop()


class TestPostgresShared(SharedContract):
    pass

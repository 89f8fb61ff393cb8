"""Several nodes write to one database at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC
from typing import Any

import pyarrow as pa

from contracts.metrics_contract import address, aliases_of, called, only
from contracts.storage_contract import BUCKET, MINUTE, TABLE, batch, delta, deltas_of, segment
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ADDRESS_ALIAS, DetectPoint, Entity
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.parked import ParkedQuery
from skyfarer.oap.core.storage import (
    Analysed,
    Deltas,
    Heartbeat,
    Merge,
    Parked,
    StoredMeanwhileError,
)
from skyfarer.oap.core.tasks import ProfileTask
from skyfarer.oap.storage.postgresql import PostgresStorage

NODES, BATCHES, SERVICES = 4, 8, 5
MERGES = {"calls": Merge.SUM, "slowest": Merge.MAX, "kinds": Merge.SUM}
DAY = BUCKET // 10_000
TIMEOUT_S = 120


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


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """All begin together; what they return, or raise."""
    ready = threading.Barrier(len(work))

    def run(one: Callable[[], Any]) -> Any:
        ready.wait(TIMEOUT_S)
        return one()

    with ThreadPoolExecutor(len(work)) as pool:
        return [one.result(TIMEOUT_S) for one in [pool.submit(run, each) for each in work]]


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


def test_a_batch_that_is_sent_twice_at_once_is_stored_once(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    def apply(node: PostgresStorage) -> bool:
        try:
            node.apply(batch(0, 1, [segment("a")], [delta()]))
        except PermanentError as error:
            assert "storage has applied it up to 1" in str(error)
            return False
        return True

    assert sorted(at_once(lambda: apply(storage), lambda: apply(other))) == [False, True]
    series = storage.series("Service", ids.service_id("shop"), ["calls"], BUCKET, BUCKET)
    assert series == {BUCKET: {"calls": 1}}


def test_of_two_batches_with_one_segment_at_once_the_later_is_told_and_leaves_nothing(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    """Whether the segment is stored or only known."""
    minute = pa.chunked_array([[MINUTE]])
    unsampled = pa.table({"segment_id": ["b"], "minute": [MINUTE]})
    for number, rows in enumerate(({"segments": [segment("a")]}, {"unsampled": unsampled})):

        def apply(node: PostgresStorage, name: str, number: int = number, rows: Any = rows) -> str:
            one = batch(number, number + 1, deltas=[delta()], **rows)
            try:
                node.apply(replace(one, partition=name))
            except StoredMeanwhileError as error:
                assert "analysed again without it" in str(error)
                return name
            return ""

        (lost,) = filter(None, at_once(lambda: apply(storage, "x"), lambda: apply(other, "y")))
        assert storage.applied(lost) == number
        assert list(storage.known_segments(pa.chunked_array([["ab"[number]]]), minute))
        storage.apply(replace(batch(number, number + 1), partition=lost))
    series = storage.series("Service", ids.service_id("shop"), ["calls"], BUCKET, BUCKET)
    assert series == {BUCKET: {"calls": 2}}


def test_two_that_number_parked_records_at_once_give_no_number_twice(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    parked = [Parked(number, 1, "incomplete", b"x") for number in range(20)]
    storage.apply(batch(0, 20, parked=parked, dropped={"incomplete": 20}))

    def number(node: PostgresStorage, within: range) -> set[int]:
        found = node.intend_retry(ParkedQuery("queue-a"), within, 99, 999)
        return {retry.number for retry in found}

    first, second = at_once(
        lambda: number(storage, range(10)), lambda: number(other, range(10, 20))
    )
    assert first | second == set(range(20))


def test_of_two_profiles_of_one_service_at_once_one_is_refused(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    task = ProfileTask("", "shop", "/pay", 1000, 5, 0, 10, 5, 1000)

    def add(node: PostgresStorage) -> bool:
        try:
            node.add_profile_task(task)
        except PermanentError:
            return False
        return True

    assert sorted(at_once(lambda: add(storage), lambda: add(other))) == [False, True]

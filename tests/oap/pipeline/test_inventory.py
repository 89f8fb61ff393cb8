from __future__ import annotations

from functools import reduce
from typing import Any

import ptars
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from skyfarer.oap.core.inventory import Inventory, InventoryScope, combine, identity
from skyfarer.oap.pipeline.inventory import registrations
from skyfarer.wire.messages import inventory as messages
from skyfarer.wire.row import Kind

DECODER = ptars.HandlerPool([messages.DESCRIPTOR]).get_for_message(
    messages.InventorySource.DESCRIPTOR
)
SERVICE, INSTANCE = InventoryScope.SERVICE, InventoryScope.SERVICE_INSTANCE

# Few of each, so that equal ones come up; the last two names are in another order in UTF-16.
NAMES = st.sampled_from(["", "a", "\ufffd", "\U0001f40d"])
IDS, TIMES = st.integers(0, 1), st.sampled_from([-7, 0, 1, 2, 2**40])
TOLD = st.builds(
    messages.InventorySource,
    scope=st.sampled_from([int(scope) for scope in InventoryScope]),
    name=NAMES,
    serviceId=IDS,
    uuid=st.sampled_from(["", "u"]),
    isAddress=st.booleans(),
    addressId=IDS,
    nodeType=st.integers(-1, 2),
    detectPoint=IDS,
    properties=st.sampled_from(["", '{"a": "1"}', '{"b": "2"}']),
    mappingServiceId=IDS,
)


@st.composite
def batches(draw: st.DrawFn) -> list[messages.InventorySource]:
    """What few tell, told again and again, and more that is told once."""
    few = st.sampled_from(draw(st.lists(TOLD, min_size=1, max_size=4)))
    told = draw(st.lists(few, min_size=10, max_size=30)) + draw(st.lists(TOLD, max_size=20))
    records = [messages.InventorySource.FromString(one.SerializeToString()) for one in told]
    for record in records:
        record.mappingTime, record.registerTime = draw(TIMES), draw(TIMES)
        record.heartbeatTime = draw(TIMES)
    return records


def source(scope: int, **fields: Any) -> messages.InventorySource:
    return messages.InventorySource(scope=scope, **fields)


def inventory(record: messages.InventorySource) -> Inventory:
    """The record as the registry sees it."""
    return Inventory(
        InventoryScope(record.scope),
        record.name,
        service_id=record.serviceId,
        uuid=record.uuid,
        is_address=record.isAddress,
        address_id=record.addressId,
        node_type=record.nodeType,
        detect_point=record.detectPoint,
        properties=record.properties,
        mapping_service_id=record.mappingServiceId,
        mapping_time=record.mappingTime,
        register_time=record.registerTime,
        heartbeat_time=record.heartbeatTime,
    )


def folded(records: list[messages.InventorySource]) -> list[Inventory]:
    equal: dict[tuple[object, ...], list[Inventory]] = {}
    for record in map(inventory, records):
        equal.setdefault(identity(record), []).append(record)
    return [reduce(combine, same) for same in equal.values()]


def rows(
    spark: SparkSession,
    records: list[messages.InventorySource],
    reasons: list[str | None] | None = None,
    partitions: int = 2,
) -> DataFrame:
    """As the source gives them, and a row of another kind."""
    payloads = pa.array([record.SerializeToString() for record in records], pa.binary())
    decoded = DECODER.array_to_record_batch(payloads)
    told = pa.StructArray.from_arrays(decoded.columns, names=decoded.schema.names)
    count = len(records) + 1
    table = pa.table(
        {
            "sequence": pa.array(range(count), pa.int64()),
            "kind": pa.array([int(Kind.INVENTORY)] * count, pa.int32()),
            "reason": pa.array([*(reasons or [None] * len(records)), None], pa.string()),
            "inventory": pa.concat_arrays([told, pa.nulls(1, told.type)]),
        }
    )
    return spark.createDataFrame(table).repartition(partitions)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches(), st.integers(1, 3))
def test_a_batch_says_what_combining_its_records_one_by_one_says(
    spark: SparkSession, records: list[messages.InventorySource], partitions: int
) -> None:
    assert registrations(rows(spark, records, partitions=partitions)) == folded(records)


def test_only_sound_records_of_known_scopes_are_registered(spark: SparkSession) -> None:
    records = [source(0), source(99, name="x"), source(SERVICE, name="bad"), source(SERVICE)]
    reasons = [None, None, "undecodable: no", None]
    assert registrations(rows(spark, records, reasons)) == [Inventory(SERVICE)]


def test_a_batch_without_inventories_registers_nothing(spark: SparkSession) -> None:
    assert registrations(rows(spark, [])) == []


def test_thousands_of_retries_become_one_registration_each(spark: SparkSession) -> None:
    names = [f"service-{number}" for number in range(500)]
    records = [
        source(SERVICE, name=name, registerTime=10 + again, heartbeatTime=10 + again)
        for again in range(20)
        for name in names
    ]
    found = registrations(rows(spark, records))
    assert found == [
        Inventory(SERVICE, name, register_time=10, heartbeat_time=29) for name in names
    ]

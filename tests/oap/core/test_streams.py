from __future__ import annotations

from dataclasses import fields

import pytest

from skyfarer.oap.core.entities import ENTITIES
from skyfarer.oap.core.expiry import Kept
from skyfarer.oap.core.inventory import IDENTITY, Inventory, InventoryScope
from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.streams.catalog import LASTING, MODELS, STREAMS, kept
from skyfarer.oap.core.streams.declaration import (
    DOWN_SAMPLED,
    ColumnType,
    Model,
    Precision,
    Processor,
    model,
)
from skyfarer.oap.core.streams.inventories import INVENTORIES, INVENTORY_MODELS
from skyfarer.oap.core.streams.metrics import RELATIONS, SOURCES
from skyfarer.oap.core.streams.records import EVENT, LOG, SEGMENT, SLOW
from skyfarer.oap.core.time_bucket import PRECISIONS

PYTHON_TYPES = {
    ColumnType.BOOLEAN: "bool",
    ColumnType.INT: "int",
    ColumnType.LONG: "int",
    ColumnType.TEXT: "str",
}
BASE = {"sequence", "register_time", "heartbeat_time", "last_update_time"}


def test_no_name_is_declared_twice_and_no_scope_by_two_inventories() -> None:
    assert len({stream.name for stream in STREAMS}) == len(STREAMS)
    assert len({stream.scope for stream in INVENTORIES}) == len(INVENTORIES)


@pytest.mark.parametrize("table", MODELS.values(), ids=MODELS)
def test_a_model_has_a_key_each_column_once_and_indexes_of_its_own_columns(
    table: Model,
) -> None:
    names = [column.name for column in (*table.key, *table.columns)]
    assert table.key
    assert len(set(names)) == len(names)
    for index in table.indexes:
        assert {*index.columns, index.only} <= {*names, ""}


def test_every_processor_has_streams_of_the_precision_of_its_kind() -> None:
    found = {processor: set[tuple[Precision, ...]]() for processor in Processor}
    for stream in STREAMS:
        found[stream.processor].add(model(stream).precisions)
    assert found == {
        Processor.INVENTORY: {()},
        Processor.MANAGEMENT: {()},
        Processor.METRICS: {(), DOWN_SAMPLED},
        Processor.TOP_N: {(Precision.SECOND,)},
        Processor.RECORD: {(Precision.SECOND,), (Precision.MINUTE,), (Precision.DAY,)},
    }


def test_down_sampling_divides_minutes_as_time_buckets_do() -> None:
    assert tuple(one.minute_divisor for one in DOWN_SAMPLED) == PRECISIONS


def test_only_time_series_expire_records_and_metrics_each_in_their_time() -> None:
    assert {name for name in MODELS if kept(name) is None} == {one.name for one in LASTING}
    records = {name for name in MODELS if kept(name) is Kept.RECORD}
    assert records == {
        *("segment", "unsampled", "log", "event", "record", "tag_autocomplete"),
        *(what.value for what in Slow),
    }
    relations = {stream.name for stream in RELATIONS.values()}
    sources = {stream.name for stream in SOURCES.values()}
    assert {name for name in MODELS if kept(name) is Kept.METRICS} == relations | sources


def test_metrics_of_a_source_that_is_not_known_expire_and_other_tables_do_not() -> None:
    assert kept("metrics_of_a_later_program") is Kept.METRICS
    assert kept("old_v2_metrics_service") is None
    assert kept("lease") is None


def test_each_source_and_each_kind_of_slow_statement_has_a_stream() -> None:
    assert set(SOURCES) == set(ENTITIES)
    assert SOURCES["MQEndpointAccess"].name == "metrics_mq_endpoint_access"
    assert SOURCES["ServiceInstanceJVMGC"].name == "metrics_service_instance_jvmgc"
    assert {what: stream.name for what, stream in SLOW.items()} == {w: w.value for w in Slow}


def test_what_is_found_by_tags_has_them_in_a_column() -> None:
    tagged = {stream.name: stream.tag_type for stream in STREAMS if stream.tag_type}
    assert tagged == {SEGMENT.name: "TRACE", LOG.name: "LOG"}
    for name in tagged:
        assert MODELS[name].column("tags").type is ColumnType.TEXTS


def test_a_provider_may_have_columns_of_its_own_in_the_place_of_others() -> None:
    declared = model(EVENT)
    own = declared.without("message").beside(declared.column("message"))
    assert [column.name for column in own.columns][-1] == "message"
    assert len(own.columns) == len(declared.columns)
    with pytest.raises(KeyError):
        declared.without("message").column("message")


def test_every_column_of_an_inventory_is_a_field_of_its_type() -> None:
    types = {field.name: field.type for field in fields(Inventory)}
    for table in INVENTORY_MODELS.values():
        expected = {column.attribute: PYTHON_TYPES[column.type] for column in table.columns}
        assert {name: types[name] for name in expected} == expected


def test_the_inventories_have_the_columns_of_the_original() -> None:
    names = {
        stream.name: {column.name for column in model(stream).columns} - BASE
        for stream in INVENTORIES
    }
    address = {"name", "is_address", "address_id"}
    mapping = {"mapping_service_id", "mapping_last_update_time"}
    assert names == {
        "service_inventory": address | mapping | {"node_type", "properties"},
        "service_instance_inventory": address | {"instance_uuid", "service_id", "properties"},
        "endpoint_inventory": {"service_id", "name", "detect_point"},
        "network_address_inventory": {"name", "node_type"},
    }


def test_every_scope_has_a_model_that_keeps_what_tells_its_rows_apart() -> None:
    assert set(INVENTORY_MODELS) == set(InventoryScope)
    for scope, table in INVENTORY_MODELS.items():
        stored = {column.attribute for column in table.columns}
        assert {*IDENTITY[scope], "sequence"} <= stored
        assert {column.name for column in table.columns} >= BASE

from __future__ import annotations

from dataclasses import fields

from skyfarer.oap.core.inventory import IDENTITY, InventoryScope
from skyfarer.oap.core.streams import INVENTORY_MODELS, STREAMS, ColumnType, Processor, model

PYTHON_TYPES = {
    ColumnType.BOOLEAN: "bool",
    ColumnType.INT: "int",
    ColumnType.LONG: "int",
    ColumnType.TEXT: "str",
}
BASE = {"sequence", "register_time", "heartbeat_time", "last_update_time"}


def test_no_name_and_no_scope_is_declared_twice() -> None:
    assert len({stream.name for stream in STREAMS}) == len(STREAMS)
    assert len({(stream.processor, stream.scope) for stream in STREAMS}) == len(STREAMS)


def test_every_column_is_a_field_of_its_builder_once_and_of_its_type() -> None:
    for stream in STREAMS:
        columns = model(stream).columns
        assert len({column.name for column in columns}) == len(columns)
        types = {field.name: field.type for field in fields(stream.builder)}
        expected = {column.field: PYTHON_TYPES[column.type] for column in columns}
        assert {name: types[name] for name in expected} == expected


def test_the_inventories_have_the_columns_of_the_original() -> None:
    names = {
        stream.name: {column.name for column in model(stream).columns} - BASE
        for stream in STREAMS
        if stream.processor is Processor.INVENTORY
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
        kept = {column.field for column in table.columns}
        assert {*IDENTITY[scope], "sequence"} <= kept
        assert {column.name for column in table.columns} >= BASE

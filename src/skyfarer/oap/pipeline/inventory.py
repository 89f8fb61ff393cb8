"""The names of a micro-batch that want an id, each once.

The worker chain of the original in one stage: equal records are combined where they lie (L1,
Spark's partial aggregation), then in one place (the exchange and the driver: there is one owner a
batch), and storage combines the result with its rows (L2). `core.inventory.combine` is commutative
and associative, so each of its rules is an aggregate of Spark, and how the batch was cut into
partitions does not show in the result.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.inventory import IDENTITY, Inventory, InventoryScope

_SOURCES = {
    "name": "name",
    "service_id": "serviceId",
    "uuid": "uuid",
    "is_address": "isAddress",
    "address_id": "addressId",
    "detect_point": "detectPoint",
    "heartbeat_time": "heartbeatTime",
}
"""Field of an inventory → of its source, where the greater stays."""


def registrations(rows: DataFrame) -> list[Inventory]:
    """Of the batch's rows that are inventories (column `inventory`, reason null): distinct by the
    inventory's own equality, in the order in which they first came.

    Equals folding `combine` over the records, in any order. Blocks on Spark; called on the driver.
    A scope that nobody knows is left out.
    """
    told = rows.where(
        F.col("reason").isNull() & F.col("inventory.scope").isin([*map(int, InventoryScope)])
    ).select("sequence", "inventory.*")
    distinct = told.groupBy("scope", *_identity()).agg(*_combined())
    return [_inventory(row) for row in distinct.toArrow().sort_by("first").to_pylist()]


def _identity() -> list[Column]:
    """The fields by which records of a scope are equal; null in the scopes that do not mind."""
    minding: dict[str, list[int]] = {}
    for scope, fields in IDENTITY.items():
        for field in fields:
            minding.setdefault(field, []).append(int(scope))
    return [
        F.when(F.col("scope").isin(scopes), F.col(_SOURCES[field])).alias(f"by_{field}")
        for field, scopes in minding.items()
    ]


def _combined() -> list[Column]:
    register_time, mapping = F.col("registerTime"), F.col("mappingServiceId")
    says = (F.col("properties") != "") | (F.col("nodeType") != 0)
    update_time = F.when(says, F.greatest("heartbeatTime", F.lit(0))).otherwise(0)
    return [
        F.min("sequence").alias("first"),
        *(F.max(source).alias(field) for field, source in _SOURCES.items()),
        F.min(F.when(register_time != 0, register_time)).alias("register_time"),
        F.max(F.struct(says, update_time.alias("at"), "properties", "nodeType")).alias("told"),
        F.max(F.struct(mapping != 0, F.col("mappingTime"), mapping)).alias("mapped"),
    ]


def _inventory(row: dict[str, Any]) -> Inventory:
    told, mapped = row["told"], row["mapped"]
    return Inventory(
        scope=InventoryScope(row["scope"]),
        **{field: row[field] for field in _SOURCES},
        node_type=told["nodeType"],
        properties=told["properties"],
        mapping_service_id=mapped["mappingServiceId"],
        mapping_time=mapped["mappingTime"],
        register_time=row["register_time"] or 0,
        update_time=told["at"],
    )

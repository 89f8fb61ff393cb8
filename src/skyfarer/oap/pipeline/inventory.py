"""The names of a micro-batch that want an id, each once.

The worker chain of the original in one stage. Most records repeat others, in all but their times:
those become one where they lie and once more after the exchange (L1, Spark's hash aggregation).
What is left comes to the driver, the one owner there is in a batch, where `core.inventory.combine`
makes one of all that are equal; storage combines it with its row (L2). As `combine` minds neither
order nor repetition, how the batch was cut into partitions does not show in the result.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.inventory import Inventory, InventoryScope, combine, identity

_SOURCES = {
    "scope": "scope",
    "name": "name",
    "service_id": "serviceId",
    "uuid": "uuid",
    "is_address": "isAddress",
    "address_id": "addressId",
    "node_type": "nodeType",
    "detect_point": "detectPoint",
    "properties": "properties",
    "mapping_service_id": "mappingServiceId",
}
"""Field of an inventory → of its source: all but the times."""


def registrations(rows: DataFrame) -> list[Inventory]:
    """Of the batch's rows that are inventories (column `inventory`, reason null): distinct by the
    inventory's own equality, in the order in which they first came.

    Equals folding `combine` over the records, in any order. Blocks on Spark; called on the driver.
    A scope that nobody knows is left out.
    """
    distinct: dict[tuple[object, ...], Inventory] = {}
    for row in _repeated_once(rows).toArrow().sort_by("first").to_pylist():
        new = _inventory(row)
        key = identity(new)
        distinct[key] = combine(distinct[key], new) if key in distinct else new
    return list(distinct.values())


def _repeated_once(rows: DataFrame) -> DataFrame:
    """Records that differ only in their times, combined: aggregates of numbers alone, which Spark
    keeps in a hash table (with a text among them it would sort)."""
    told = rows.where(
        F.col("reason").isNull() & F.col("inventory.scope").isin([*map(int, InventoryScope)])
    ).select("sequence", "inventory.*")
    registered = F.col("registerTime")
    fields = [F.col(source).alias(field) for field, source in _SOURCES.items()]
    return told.groupBy(*fields).agg(
        F.min("sequence").alias("first"),
        F.max("mappingTime").alias("mapping_time"),
        F.min(F.when(registered != 0, registered)).alias("register_time"),
        F.max("heartbeatTime").alias("heartbeat_time"),
    )


def _inventory(row: dict[str, Any]) -> Inventory:
    return Inventory(
        scope=InventoryScope(row["scope"]),
        **{field: row[field] for field in _SOURCES if field != "scope"},
        mapping_time=row["mapping_time"],
        register_time=row["register_time"] or 0,
        heartbeat_time=row["heartbeat_time"],
    )

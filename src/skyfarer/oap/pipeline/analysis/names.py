"""The names of the ids that stand in a batch's v2 segments and reports.

The ids are collected first and their names read from storage, for just these. They are brought to
the rows as one broadcast row: names lie in as many small maps as there are names, by the remainder
of the id, since Spark looks through a map from its beginning to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.inventory import Inventory, InventoryReader, InventoryScope
from skyfarer.oap.pipeline.sources.reports import INSTANCE_ID
from skyfarer.oap.pipeline.sources.shapes import REPORTS

COLUMNS: Final = ("instances", "endpoints", "addresses")
LOOKUP_MAX: Final = 10_000
"""Ids asked of storage at once."""
_INSTANCE = pa.struct({"service": pa.string(), "name": pa.string()})


def with_names(rows: DataFrame, told: Column, inventories: InventoryReader) -> DataFrame:
    """All the rows, with `COLUMNS` for `looked_up`: the names of the ids in rows that are `told`.

    Blocks for a small job of Spark's and on storage.
    """
    found: dict[int, list[int]] = {}
    for row in _ids(rows.where(told)).toArrow().to_pylist():
        found.setdefault(row["scope"], []).append(row["id"])
    names = rows.sparkSession.createDataFrame(_names(found, inventories))
    return rows.crossJoin(F.broadcast(names))


def instance_id() -> Column:
    """Of whoever sent a v2 segment, or reports that have an id in the place of names; else null."""
    of_reports = F.get(F.col(f"{REPORTS}.{INSTANCE_ID}"), F.lit(0))
    return F.coalesce("v2.serviceInstanceId", of_reports)


def looked_up(names: str, key: Column) -> Column:
    """Null when there is none: a string, for instances a struct of service and name."""
    maps = F.col(names)
    return F.try_element_at(F.get(maps, F.pmod(key, F.size(maps))), key)


def _names(found: Mapping[int, Iterable[int]], inventories: InventoryReader) -> pa.Table:
    def read(scope: InventoryScope, ids: Iterable[int]) -> Mapping[int, Inventory]:
        wanted, known = sorted(ids), dict[int, Inventory]()
        for first in range(0, len(wanted), LOOKUP_MAX):
            part = wanted[first : first + LOOKUP_MAX]
            known.update(inventories.inventories_by_id(scope, part))
        return known

    def plain(scope: InventoryScope) -> pa.Array:
        known = read(scope, found.get(scope, ()))
        return _in_maps({key: one.name for key, one in known.items()}, pa.string())

    scope = InventoryScope.SERVICE_INSTANCE
    instances = read(scope, found.get(scope, ()))
    services = read(InventoryScope.SERVICE, {one.service_id for one in instances.values()})
    named = {
        key: {"service": services[one.service_id].name, "name": one.name or one.uuid}
        for key, one in instances.items()
        if one.service_id in services
    }
    endpoints, addresses = plain(InventoryScope.ENDPOINT), plain(InventoryScope.NETWORK_ADDRESS)
    return pa.table([_in_maps(named, _INSTANCE), endpoints, addresses], names=list(COLUMNS))


def _in_maps(names: Mapping[int, Any], value: pa.DataType) -> pa.Array:
    maps: list[list[tuple[int, Any]]] = [[] for _ in range(max(1, len(names)))]
    for key, name in names.items():
        maps[key % len(maps)].append((key, name))
    return pa.array([maps], pa.list_(pa.map_(pa.int32(), value)))


def _ids(rows: DataFrame) -> DataFrame:
    """Every id that stands in the batch: scope, id."""
    spans = F.col("v2.spans")
    refs = F.flatten(F.transform(spans, lambda span: span["refs"]))

    def of(scope: InventoryScope, *lists: Column) -> Column:
        return F.transform(
            F.array_distinct(F.concat(*lists)),
            lambda key: F.struct(F.lit(int(scope)).alias("scope"), key.alias("id")),
        )

    def each(elements: Column, name: str) -> Column:
        return F.transform(elements, lambda one: one[name])

    sender, instance = F.array(instance_id()), InventoryScope.SERVICE_INSTANCE
    of_segment = F.concat(
        of(instance, sender, each(refs, "parentServiceInstanceId")),
        of(
            InventoryScope.ENDPOINT,
            each(spans, "operationNameId"),
            each(refs, "parentEndpointId"),
        ),
        of(InventoryScope.NETWORK_ADDRESS, each(spans, "peerId"), each(refs, "networkAddressId")),
    )
    every = F.when(F.col("v2").isNotNull(), of_segment).otherwise(of(instance, sender))
    found = rows.select(F.explode(every).alias("found")).select("found.scope", "found.id")
    return found.where(F.col("id") > 0).distinct()

"""The names of a micro-batch that want an id, each once."""

from __future__ import annotations

from pyspark.sql import DataFrame

from skyfarer.oap.core.inventory import Inventory


def registrations(rows: DataFrame) -> list[Inventory]:
    """Of the batch's rows that are inventories (column `inventory`, reason null): distinct by the
    inventory's own equality, in one place."""
    raise NotImplementedError(rows)

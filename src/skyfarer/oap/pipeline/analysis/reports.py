"""What agents report of themselves, as rows of the sources that metrics read.

Workers have taken the messages apart (`sources.reports`); here their names are cut, and what a
metric names is found in its place.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.entities import ENTITY_COLUMNS, REPORTED, Entity
from skyfarer.oap.oal.plan import Field
from skyfarer.oap.pipeline.analysis.entry import MINUTE_MS, NamingSettings
from skyfarer.oap.pipeline.analysis.traffic.attributes import service_id
from skyfarer.oap.pipeline.analysis.traffic.texts import Names
from skyfarer.oap.pipeline.sources.reports import slots_of
from skyfarer.oap.pipeline.sources.shapes import REPORTS

_NAME: Final = {
    Entity.SERVICE: "service",
    Entity.INSTANCE: "instance",
    Entity.ENDPOINT: "endpoint",
}
_NUMBERS: Final = ("from_layer", "component")


class Reported:
    """The expressions of an emitted row, made once."""

    def __init__(self, naming: NamingSettings) -> None:
        names = Names(naming)
        told = {
            "service": names.service(F.col("report.service")),
            "instance": names.instance(F.col("report.instance")),
            "endpoint": names.endpoint(F.col("report.endpoint")),
            "layer": F.col("report.layer"),
        }
        self._sound = F.col("reason").isNull() & F.col(REPORTS).isNotNull()
        self._each = F.explode(REPORTS).alias("report")
        self._columns = (
            F.col("report.source").alias("source"),
            F.floor(F.col("report.time") / MINUTE_MS).alias("minute"),
            *(told.get(name, _nothing(name)).alias(name) for name in ENTITY_COLUMNS),
            F.col("report"),
        )

    def of(self, rows: DataFrame) -> DataFrame:
        """A row for every report among `rows`. Nothing runs yet."""
        return rows.where(self._sound).select(self._each).select(*self._columns)


def attribute(source: str, field: Field) -> Column:
    """The value of a field in an emitted row of that source, before `Field.cast`."""
    slots = slots_of(source)
    if field.path in slots:
        return F.col(f"report.{slots[field.path]}")
    if field.path == "name":
        return F.col(_NAME[REPORTED[source]])
    if field.path == "serviceName":
        return F.col("service")
    if field.path == "serviceId":
        return service_id(F.col("service"), F.col("layer"))
    raise KeyError(f"no report says {source}.{field}")


def _nothing(name: str) -> Column:
    return F.lit(0) if name in _NUMBERS else F.lit("")

"""What agents report of themselves, as rows of the sources that metrics read.

Workers have taken the messages apart (`sources.reports`); here their names are cut, and what a
metric names is found in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.entities import ENTITIES, ENTITY_COLUMNS, Entity
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.oal.plan import Field
from skyfarer.oap.pipeline.analysis.settings import NamingSettings
from skyfarer.oap.pipeline.analysis.traffic.attributes import layer_or_id
from skyfarer.oap.pipeline.analysis.traffic.texts import Names
from skyfarer.oap.pipeline.sources.reports import slots_of
from skyfarer.oap.pipeline.sources.shapes import REPORTS

_NAME: Final = {
    Entity.SERVICE: "service",
    Entity.INSTANCE: "instance",
    Entity.ENDPOINT: "endpoint",
}
_COLUMNS: Final = {
    "serviceName": "service",
    "sourceServiceName": "from_service",
    "destServiceName": "service",
    "sourceServiceInstanceName": "from_instance",
    "destServiceInstanceName": "instance",
}


class Reported:
    """The expressions of an emitted row, made once."""

    def __init__(self, naming: NamingSettings) -> None:
        names, origin = Names(naming), F.col("report.from_service")
        told = {
            "service": names.service(F.col("report.service")),
            "instance": names.instance(F.col("report.instance")),
            "endpoint": names.endpoint(F.col("report.endpoint")),
            "layer": F.col("report.layer"),
            "from_service": names.service(origin),
            "from_layer": F.when(origin == "", 0).otherwise(F.col("report.layer")),
            "from_instance": names.instance(F.col("report.from_instance")),
            "component": F.coalesce("report.component", F.lit(0)),
            "detect_point": F.coalesce("report.detect_point", F.lit("")),
        }
        self._sound = F.col("reason").isNull() & F.col(REPORTS).isNotNull()
        self._each = F.explode(REPORTS).alias("report")
        self._columns = (
            F.col("report.source").alias("source"),
            F.floor(F.col("report.time") / MINUTE_MS).alias("minute"),
            *(told.get(name, F.lit("")).alias(name) for name in ENTITY_COLUMNS),
            F.col("report"),
        )

    def of(self, rows: DataFrame, sources: Iterable[str]) -> DataFrame:
        """A row for every report of these sources among `rows`. Nothing runs yet."""
        reports = rows.where(self._sound).select(self._each)
        return reports.where(F.col("report.source").isin(*sources)).select(*self._columns)


def attribute(source: str, field: Field) -> Column | None:
    """The value of a field in an emitted row of that source, before `Field.cast`; None for
    what no report says."""
    slots = slots_of(source)
    if field.path in slots:
        return F.col(f"report.{slots[field.path]}")
    if field.path == "name":
        return F.col(_NAME[ENTITIES[source]])
    if field.path in _COLUMNS:
        return F.col(_COLUMNS[field.path])
    return layer_or_id(field)

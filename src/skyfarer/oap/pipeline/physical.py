"""The plan that Spark itself makes for the metrics of a source, of a batch that is never read."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sources.queue import SPLIT_RECORDS_MIN, QueueSource

SPLITS: Final = 2
FIELDS_SHOWN_MAX: Final = 1000
"""Spark leaves out what comes after 25."""


def physical_plan(plan: Plan, source: str) -> str:
    """Blocks for some seconds, and is to be called once in a process: it has one JVM.

    Raises as `spark_session` does: PermanentError where there is no Java.
    """
    with tempfile.TemporaryDirectory() as scratch:
        session = spark_session(SparkSettings(f"local[{SPLITS}]", scratch=Path(scratch)))
        try:
            return _planned(session, plan, source, scratch)
        finally:
            session.stop()


def _planned(session: SparkSession, plan: Plan, source: str, directory: str) -> str:
    session.conf.set("spark.sql.debug.maxToStringFields", FIELDS_SHOWN_MAX)
    session.dataSource.register(QueueSource)
    stretch = {"start": 0, "end": SPLITS * SPLIT_RECORDS_MIN, "splits": SPLITS}
    reader = session.read.format(QueueSource.name()).option("directory", directory)
    rows = reader.options(**{key: str(value) for key, value in stretch.items()}).load()
    metrics = Metrics(plan.of({source}), AnalysisSettings())
    frame, places = metrics.query_of(source, rows.persist())
    columns = (f"  {place}: {column}" for column, place in places.items())
    return "\n".join([_formatted(frame).strip(), "", "Its result has", *columns])


def _formatted(frame: DataFrame) -> str:
    """What `DataFrame.explain` prints."""
    jvm: Any = frame.sparkSession._jvm
    return str(jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "formatted"))

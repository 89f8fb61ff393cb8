"""What is made once an installation, for shorter starts later: an archive of Spark's classes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from skyfarer.oap.boot.definitions import plan_from, traced
from skyfarer.oap.boot.settings import AnalyzerConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
SPLITS = 2


def prepare() -> int:
    """Does nothing where the archive is there. The exit code; a PermanentError is raised."""
    from skyfarer.oap.pipeline import archive
    from skyfarer.oap.pipeline.java import java_home

    with tempfile.TemporaryDirectory() as scratch:
        java = java_home(os.environ, Path(scratch)) / "bin" / "java"
        made = archive.archive_for(java)
        if not made.is_file():
            print("preparing Spark for faster starts (half a minute)", file=sys.stderr)
            archive.make(java, lambda options: _exercised(Path(scratch), options))
    print(made)
    return 0


def _exercised(scratch: Path, java_options: str) -> SparkSession:
    """A session that has done all that a start of the OAP does."""
    from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
    from skyfarer.oap.pipeline.metrics import Metrics
    from skyfarer.oap.pipeline.session import SparkSettings, spark_session
    from skyfarer.oap.pipeline.sources.queue import QueueSource
    from skyfarer.oap.pipeline.warmup import warm_up

    settings = AnalysisSettings()
    metrics = Metrics(traced(plan_from(AnalyzerConfig().oalActiveFiles, ())), settings)
    session = spark_session(SparkSettings(MASTER, scratch=scratch), java_options)
    session.dataSource.register(QueueSource)
    warm_up(session, scratch, SPLITS, metrics, settings)
    return session

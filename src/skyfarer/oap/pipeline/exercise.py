"""A start of the analysis for the sake of the classes that it loads: they make the archive."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from skyfarer.base.errors import PermanentError
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.archive import QUIET, archive_for
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.warmup import warm_up

SPLITS: Final = 2
IN_HASTE: Final = "-XX:TieredStopAtLevel=1"
"""A JVM that lives for half a minute compiles no more than it must."""
DUMP_TIMEOUT_S: Final = 600


def make_archive(java: Path, plan: Plan, scratch: Path) -> None:
    """Blocks for half a minute, and is to be called once in a process: it has one JVM.

    The archive is written elsewhere and renamed, so nobody ever maps half of one. PermanentError
    where Java makes none, or the installation cannot be written to.
    """
    archive = archive_for(java)
    with _beside(archive) as beside:
        _make_base(java)
        dumped = Path(beside) / archive.name
        settings = SparkSettings(f"local[{SPLITS}]", scratch=scratch)
        options = f" -XX:ArchiveClassesAtExit={dumped} {IN_HASTE} {QUIET}"
        session = spark_session(settings, options)
        session.dataSource.register(QueueSource)
        warm_up(session, scratch, SPLITS, Metrics(plan, AnalysisSettings()))
        _end(session)
        if not dumped.is_file():
            raise PermanentError(f"{java} ended without writing an archive to {dumped.parent}")
        dumped.replace(archive)


def _beside(archive: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=archive.parent)
    except OSError as error:
        raise PermanentError(
            f"no archive can be kept in {archive.parent}: {error.strerror}; prepare as the owner "
            "of the installation, or do without: every start then takes longer, nothing else"
        ) from error


def _make_base(java: Path) -> None:
    """The archive of Java's own classes, which the one of Spark's builds on; most Javas have it."""
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    if "sharing" in shown.stderr:
        return
    made = subprocess.run([java, "-Xshare:dump"], capture_output=True, text=True, check=False)
    if made.returncode:
        told = (made.stdout + made.stderr).strip().rpartition("\n")[2]
        raise PermanentError(f"{java} -Xshare:dump made no archive of Java's own classes: {told}")


def _end(session: SparkSession) -> None:
    """Java writes when it exits: that is when its standard input closes."""
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    session.stop()
    process.stdin.close()
    process.wait(DUMP_TIMEOUT_S)

"""An archive of classes for Spark's JVM: a start maps all 20,000 in place of reading jars.

One file an installation, under its `share/skyfarer`, named after the Spark and the Java it was made
with. Java checks it against its own build and every jar when it is mapped, and goes on without it
where anything differs: an archive can be missing or stale, never wrong. `make` writes another file
and renames it, so nobody ever maps half of one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from skyfarer.base.errors import PermanentError
from skyfarer.oap.pipeline.java import release

QUIET: Final = "-Xlog:cds*=off"
"""What does not fit is not worth a line: the start takes longer, no more."""
IN_HASTE: Final = "-XX:TieredStopAtLevel=1"
"""A JVM that lives for half a minute compiles no more than it must."""
DUMP_TIMEOUT_S: Final = 120


def archive_for(java: Path, prefix: Path = Path(sys.prefix)) -> Path:
    """Where the archive for this `java` is, or would be."""
    name = f"spark-{pyspark.__version__}-java-{release(java)}.jsa"
    return prefix / "share" / "skyfarer" / name


def options(java: Path) -> str:
    """Java's options that use the archive; none where there is no archive."""
    archive = archive_for(java)
    return f" -XX:SharedArchiveFile={archive} {QUIET}" if archive.is_file() else ""


def make(java: Path, exercise: Callable[[str], SparkSession]) -> Path:
    """Blocks for half a minute. `exercise` starts a session with Java's options that it is given,
    and uses what shall be in the archive. PermanentError where Java makes none."""
    archive = archive_for(java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    _make_base(java)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        dumped = Path(scratch) / archive.name
        _end(exercise(f" -XX:ArchiveClassesAtExit={dumped} {IN_HASTE} {QUIET}"))
        if not dumped.is_file():
            raise PermanentError(f"{java} ended without writing an archive to {dumped.parent}")
        dumped.replace(archive)
    return archive


def _make_base(java: Path) -> None:
    """The archive of Java's own classes, which the one of Spark's builds on; most Javas have it."""
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    if "sharing" not in shown.stderr:
        subprocess.run([java, "-Xshare:dump"], capture_output=True, check=True)


def _end(session: SparkSession) -> None:
    """Java writes when it exits: that is when its standard input closes."""
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    session.stop()
    process.stdin.close()
    process.wait(DUMP_TIMEOUT_S)

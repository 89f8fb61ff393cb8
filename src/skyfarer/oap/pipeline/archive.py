"""An archive of classes for Spark's JVM: a start maps all 20,000 in place of reading jars.

One file an installation, under its `share/skyfarer`, named after the Spark and the Java it was made
with (`exercise`). Java checks it against its own build and every jar when it is mapped, and goes on
without it where anything differs: an archive can be missing or stale, never wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pyspark

from skyfarer.oap.pipeline.java import release

QUIET: Final = "-Xlog:cds*=off"
"""What does not fit is not worth a line: the start takes longer, no more."""


def archive_for(java: Path) -> Path:
    """Where the archive for this `java` is, or would be."""
    name = f"spark-{pyspark.__version__}-java-{release(java)}.jsa"
    return Path(sys.prefix, "share", "skyfarer", name)


def options(java: Path) -> str:
    """Java's options that use the archive; none where there is no archive."""
    archive = archive_for(java)
    return f" -XX:SharedArchiveFile={archive} {QUIET}" if archive.is_file() else ""

"""What is made once an installation, for shorter starts later: an archive of Spark's classes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from skyfarer.oap.boot.definitions import plan_from
from skyfarer.oap.boot.settings import AnalyzerConfig


def prepare() -> int:
    """Does nothing where the archive is there. The exit code; a PermanentError is raised."""
    from skyfarer.oap.pipeline.archive import archive_for
    from skyfarer.oap.pipeline.exercise import make_archive
    from skyfarer.oap.pipeline.java import java_home

    with tempfile.TemporaryDirectory() as scratch:
        java = java_home(os.environ, Path(scratch)) / "bin" / "java"
        archive = archive_for(java)
        if not archive.is_file():
            print("preparing Spark for faster starts (half a minute)", file=sys.stderr)
            plan = plan_from(AnalyzerConfig().oalActiveFiles, ())
            make_archive(java, plan, Path(scratch))
    print(archive)
    return 0

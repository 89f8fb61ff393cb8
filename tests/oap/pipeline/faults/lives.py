"""Whole lives of a job, each a process with a JVM and workers of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from oap.pipeline.faults import job

LIFE_S = 1500


def lived(directory: Path, *fates: str) -> tuple[int, str]:
    """Exit code and output of a job."""
    path = os.pathsep.join(part for part in sys.path if part)
    with subprocess.Popen(
        [sys.executable, "-m", job.__name__, str(directory), *fates],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=LIFE_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said

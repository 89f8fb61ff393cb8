"""Whole lives of a job, each a process with a JVM and workers of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from oap.pipeline.faults import job

LIFE_S = 1500


def lived(directory: Path, *fates: str) -> tuple[int, str]:
    """Exit code and output of a job."""
    with living(directory, subprocess.PIPE, *fates) as process:
        said, _ = process.communicate(timeout=LIFE_S)
    return process.returncode, said


@contextmanager
def living(directory: Path, output: int | IO[str], *fates: str) -> Iterator[subprocess.Popen[str]]:
    """A job that runs; killed with all its processes where it is left too early."""
    path = os.pathsep.join(part for part in sys.path if part)
    with subprocess.Popen(
        [sys.executable, "-m", job.__name__, str(directory), *fates],
        env={**os.environ, "PYTHONPATH": path},
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

"""Whole lives of a job, each a process with a JVM and workers of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

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


@contextmanager
def orphans(directory: Path) -> Iterator[dict[str, list[psutil.Process]]]:
    """By name, all that a driver which was killed alone has left behind. It is killed where it is
    left too early."""
    found: dict[str, list[psutil.Process]] = {}
    for line in (directory / job.ORPHANS).read_text().splitlines():
        pid, begun, name = line.split(maxsplit=2)
        found.setdefault(name, [])
        with suppress(psutil.NoSuchProcess):
            one = psutil.Process(int(pid))
            if one.create_time() == float(begun):
                found[name].append(one)
    try:
        yield found
    finally:
        for one in [one for those in found.values() for one in those]:
            with suppress(psutil.NoSuchProcess):
                one.kill()


def has_ended(process: psutil.Process) -> bool:
    """Whether or not anybody has asked how."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True

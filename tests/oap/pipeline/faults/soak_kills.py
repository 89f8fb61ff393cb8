"""Kills at moments that nobody chose: `make soak`, not a part of `make test`.

A queue goes through lives of a job, each ended a while after its first batch was planned: all of
its processes, its JVM alone, or its workers, of which the job survives. When everything is stored
the tables are those of a run that nothing happened to, and the next queue begins.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import psutil
import pytest
from pyspark.sql import SparkSession

from oap.pipeline.faults import job
from oap.pipeline.faults.line import Line, Tables, contents
from oap.pipeline.faults.lives import LIFE_S, living
from oap.pipeline.faults.work import BATCH, BATCHES
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.testing.programs import eventually

KILLS = int(os.environ.get("SKYFARER_KILLS", "500"))
SEED = int(os.environ.get("SKYFARER_SEED", "6"))
ALL, JVM, WORKERS = "all", "the JVM", "the workers"


def killed(process: subprocess.Popen[str], whom: str) -> bool:
    """Whether there was anybody to kill."""
    if whom == ALL:
        os.killpg(process.pid, signal.SIGKILL)
        return True
    with suppress(psutil.NoSuchProcess):  # all is stored, and the job has ended
        found = [one for one in psutil.Process(process.pid).children() if "java" in one.name()]
        doomed = found if whom == JVM else [two for one in found for two in one.children(True)]
        for one in doomed:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        return bool(doomed)
    return False


@contextmanager
def begun(life: Path) -> Iterator[subprocess.Popen[str]]:
    """A job whose first batch is planned."""
    planned = life / job.PLANNED
    planned.unlink(missing_ok=True)
    with (life / "said").open("w") as output, living(life, output) as process:
        eventually(
            lambda: planned.exists() or process.poll() is not None, LIFE_S, "a batch is planned"
        )
        yield process


def planned_to_end_s(life: Path) -> float:
    with begun(life) as process:
        since = time.monotonic()
        assert process.wait(LIFE_S) == 0, (life / "said").read_text()
        return time.monotonic() - since


@pytest.mark.timeout(0)
def test_killed_at_any_moment_the_tables_are_those_of_one_never_killed(
    filled: Path, undisturbed: Tables, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    chance, kills, queues = Random(SEED), Counter[str](), 0
    whole_s = planned_to_end_s(shutil.copytree(filled, tmp_path / "whole"))
    while sum(kills.values()) < KILLS:
        life = shutil.copytree(filled, tmp_path / "life")
        while not is_stored(life, spark, metrics):
            with begun(life) as process:
                time.sleep(chance.uniform(0, whole_s))
                whom = chance.choice((ALL, JVM, WORKERS))
                kills[whom] += killed(process, whom)
                process.wait(LIFE_S)
        assert contents(life) == undisturbed, f"after {kills}, seed {SEED}"
        shutil.rmtree(life)
        queues += 1
        print(f"{sum(kills.values())} of {KILLS} kills, {queues} queues whole", flush=True)


def is_stored(life: Path, spark: SparkSession, metrics: Metrics) -> bool:
    with Line(life, spark, metrics) as line:
        return line.applied() == BATCHES * BATCH

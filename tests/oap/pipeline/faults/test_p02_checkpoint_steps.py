"""The JVM or everything is killed at the steps that Spark takes by itself: while a batch is
planned, with the offsets written, with the batch being read, and while old files are purged. The
next life ends where one never killed would. The step between, the commit written, is P3's.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.faults import job
from oap.pipeline.faults.line import Line, Tables, contents
from oap.pipeline.faults.lives import lived
from oap.pipeline.faults.work import BATCH
from skyfarer.oap.pipeline.metrics import Metrics

pytestmark = pytest.mark.timeout(3600)

CHECKPOINT = "spark/checkpoint"


def test_killed_at_every_step_of_the_checkpoint_the_tables_are_those_of_one_never_killed(
    filled: Path, undisturbed: Tables, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    life = shutil.copytree(filled, tmp_path / "life")
    (life / job.WORKER_DIED).touch()  # one that died would make the query begin anew
    offsets, commits = life / CHECKPOINT / "offsets", life / CHECKPOINT / "commits"

    def killed(file: str, deed: str, *, gone: bool = False) -> int:
        code, said = lived(life, f"{'gone' if gone else 'there'}:{file}:{deed}")
        assert code == -signal.SIGKILL if deed == "kill all" else code > 0, said
        assert (life / job.HITS).read_text().splitlines()[-1] == f"{file}, {deed}"
        with Line(life, spark, metrics) as line:
            return line.applied()

    (life / job.PLANNER_WAITS).touch()
    assert killed(job.PLANNED, "kill the JVM") == 0
    (life / job.PLANNER_WAITS).unlink()
    assert killed(f"{CHECKPOINT}/offsets/0", "kill the JVM") == 0
    (life / job.WORKER_READS).unlink(missing_ok=True)
    assert killed(job.WORKER_READS, "kill all") == 0
    assert (offsets / "0").exists() and not (commits / "0").exists()
    stored = killed(f"{CHECKPOINT}/offsets/0", "kill all", gone=True)
    assert not (offsets / "0").exists() and (offsets / "1").exists()
    assert stored > BATCH
    with Line(life, spark, metrics) as line:
        line.run()
    assert contents(life) == undisturbed

"""The JVM, or it and the driver, are killed at the steps that Spark takes by itself: while a batch
is planned, with the offsets written, with the batch being read, with the commit written, and while
old files are purged. The next life ends where one never killed would.
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
from oap.pipeline.faults.work import BATCH, BATCHES
from skyfarer.oap.pipeline.metrics import Metrics

pytestmark = pytest.mark.timeout(3600)

CHECKPOINT = "spark/checkpoint"
FEW = 9
"""Records of a batch, so that there are enough for all lives. The first one that is stored has as
many as ever, as calls come before it is known whom they reach, or after."""


def test_killed_at_every_step_of_the_checkpoint_the_tables_are_those_of_one_never_killed(
    filled: Path, undisturbed: Tables, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    life = shutil.copytree(filled, tmp_path / "life")
    (life / job.WORKER_DIED).touch()  # one that died would make the query begin anew
    offsets, commits = life / CHECKPOINT / "offsets", life / CHECKPOINT / "commits"

    def killed(file: str, deed: str, *, gone: bool = False, size: int = FEW) -> int:
        (life / file).unlink(missing_ok=True)  # an earlier life's
        fate = f"{'gone' if gone else 'there'}:{file}:{deed}"
        code, said = lived(life, fate, f"records={size}")
        assert code == -signal.SIGKILL if deed == "kill all" else code > 0, said
        assert (life / job.HITS).read_text().splitlines()[-1] == f"{file}, {deed}"
        with Line(life, spark, metrics) as line:
            return line.applied()

    for deed in ("kill the JVM", "kill all"):
        (life / job.PLANNER_WAITS).touch()
        assert killed(job.PLANNED, deed) == 0
        (life / job.PLANNER_WAITS).unlink()
        assert killed(f"{CHECKPOINT}/offsets/0", deed) == 0
        assert killed(job.WORKER_READS, deed) == 0
    assert (offsets / "0").exists() and not (commits / "0").exists()
    stored = 0
    for deed in ("kill the JVM", "kill all"):
        begun = stored
        stored = killed(f"{CHECKPOINT}/commits/0", deed, size=FEW if begun else BATCH)
        assert stored > begun
    for deed in ("kill the JVM", "kill all"):
        begun = stored
        stored = killed(f"{CHECKPOINT}/offsets/0", deed, gone=True)
        assert stored > begun + FEW
    assert not (offsets / "0").exists() and (offsets / "1").exists()
    assert stored < BATCH * BATCHES
    with Line(life, spark, metrics) as line:
        line.run()
    assert contents(life) == undisturbed

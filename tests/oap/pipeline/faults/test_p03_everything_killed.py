"""Real processes and real kills: workers, the whole group, the JVM; and a checkpoint in ruins,
after which batches have another size.

One queue goes through all of it, so that few JVMs are started, and at the end its tables are those
of a run that nothing happened to.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.faults import job
from oap.pipeline.faults.line import (
    COMMIT,
    COMMITTED,
    SEARCH,
    STATEMENT,
    Line,
    Tables,
    contents,
)
from oap.pipeline.faults.lives import lived
from oap.pipeline.faults.work import BATCH, BATCHES
from skyfarer.oap.pipeline.metrics import Metrics

pytestmark = pytest.mark.timeout(3600)

OTHER = 20
"""Records of a batch after the checkpoint was lost."""
WORKERS = [(SEARCH, 1), (COMMIT, 2), (COMMITTED, 3)]
"""When all workers of Python's are killed, and in the midst of a transaction in the life after it:
the sink needs none of them there, and the next batch has others. The one that plans the first
batch, and one that reads the second, die by themselves."""


def ruin(checkpoint: Path) -> None:
    """As a power cut leaves files, as a bad disk does, and not at all."""
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file())
    assert {path.parent.name for path in files} >= {"offsets", "commits"}
    for number, file in enumerate(files):
        if number % 3 == 2:
            file.unlink()
        else:
            file.write_bytes([b"", b"\xff\x00 no such thing"][number % 3])
    (checkpoint / "offsets" / "99").write_text("v1\n{}\n{}")


def test_killed_workers_groups_and_jvms_and_ruined_checkpoints_change_no_table(
    filled: Path, undisturbed: Tables, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    life = shutil.copytree(filled, tmp_path / "life")
    (life / job.PLANNER_DIES).touch()
    code, said = lived(
        life,
        *(f"{moment}/{time}/kill the workers" for moment, time in WORKERS),
        f"{COMMITTED}/1/lose the checkpoint",
        f"{COMMIT}/5/kill all",
    )
    assert code == -signal.SIGKILL, said
    assert (life / job.WORKER_DIED).exists()
    assert (life / job.HITS).read_text().splitlines() == [
        f"{job.PLANNED}, kill the planner",
        f"{SEARCH}, kill the workers",
        f"{COMMITTED}, lose the checkpoint",
        f"{COMMIT}, kill the workers",
        f"{COMMITTED}, kill the workers",
        f"{COMMIT}, kill all",
    ]
    assert "analysis failed at record" in said
    ruin(life / "spark" / "checkpoint")
    size = f"records={OTHER}"
    fates = f"{STATEMENT}/5/kill the workers", "there:spark/checkpoint/commits/0:kill the JVM"
    code, said = lived(life, *fates, size)
    assert code == job.GIVEN_UP, said
    assert f"{STATEMENT}, kill the workers" in (life / job.HITS).read_text()
    assert "Spark's JVM is gone" in said
    with Line(life, spark, metrics) as line:
        assert line.applied() == (BATCHES - 1) * BATCH + OTHER
        line.run()
    assert contents(life) == undisturbed

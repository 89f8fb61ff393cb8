"""Executors as processes of their own, as a cluster of Spark's has them: one dies while its worker
reads a batch, others with the rows that they keep for the query of the metrics. Another one does
their tasks again, and the tables are those of a run that nothing happened to.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.faults import job
from oap.pipeline.faults.line import COMMITTED, SEARCH, Line, Tables, contents
from oap.pipeline.faults.lives import lived
from oap.pipeline.faults.work import BATCH, BATCHES
from skyfarer.oap.pipeline.metrics import Metrics

pytestmark = pytest.mark.timeout(3600)

CLUSTER = "master=local-cluster[2,1,1024]"


def test_executors_killed_while_they_read_and_with_what_they_keep_change_no_table(
    filled: Path, undisturbed: Tables, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    life = shutil.copytree(filled, tmp_path / "life")
    (life / job.EXECUTOR_DIES).touch()
    deaths = [f"{SEARCH}/3/kill an executor", f"{COMMITTED}/4/kill an executor"]
    code, said = lived(life, CLUSTER, *deaths)
    assert code == 0, said
    assert (life / job.WORKER_DIED).exists()
    assert (life / job.HITS).read_text().splitlines() == [
        f"{job.WORKER_READS}, kill its executor",
        f"{SEARCH}, kill an executor",
        f"{COMMITTED}, kill an executor",
    ]
    assert "analysis failed" not in said, said
    with Line(life, spark, metrics) as line:
        assert line.applied() == BATCHES * BATCH
    assert contents(life) == undisturbed

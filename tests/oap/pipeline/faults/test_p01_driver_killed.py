"""The driver dies between any two steps of a batch: the next start ends where it would have.

Many deaths are copies of the files and an exception, in this process, where a life costs little;
others are of processes of their own, by SIGKILL.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.faults import job
from oap.pipeline.faults.line import (
    BEGIN,
    COMMIT,
    COMMITTED,
    METRICS,
    RELEASE,
    RELEASED,
    SEARCH,
    STATEMENT,
    Fate,
    Killed,
    Line,
    Tables,
    contents,
    dying,
)
from oap.pipeline.faults.lives import LIFE_S, has_ended, lived, living, orphans
from oap.pipeline.faults.work import BATCH, BATCHES
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.testing.programs import eventually

DEATHS = (
    *((SEARCH, 1), (METRICS, 1), (BEGIN, 1), (STATEMENT, 1), (STATEMENT, 30), (COMMIT, 1)),
    *((COMMITTED, 1), (METRICS, 1), (RELEASE, 1), (COMMIT, 2), (RELEASED, 1)),
)
STEPS = ((SEARCH, 1), (BEGIN, 1), (STATEMENT, 30), (COMMIT, 1), (COMMITTED, 1))
"""From the entry of the sink to the end of its transaction."""
KILLS = [(*step, deed) for step in STEPS for deed in ("kill the JVM", "kill all")]
FEW = 9
"""Records of a batch of theirs, so that there are enough for all lives. The first one has as many
as ever, as calls come before it is known whom they reach, or after."""
ORPHANS_END_S = 120
EACH = 12
"""Of so many moments of a transaction one is looked at."""


def test_a_driver_killed_at_any_step_of_a_batch_leaves_the_tables_of_one_never_killed(
    filled: Path, undisturbed: Tables, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    life = shutil.copytree(filled, tmp_path / "0")
    for number, (moment, time) in enumerate(DEATHS, start=1):
        left = tmp_path / str(number)
        fate = Fate(moment, time, dying(life, left))
        with Line(life, spark, metrics, fate) as line, pytest.raises(Killed):
            line.run()
        life = left
    with Line(life, spark, metrics) as line:
        assert 0 < line.applied() < BATCHES * BATCH, "no batch is left, or none was ever stored"
        line.run()
        assert line.consumer.committed() == BATCHES * BATCH
    assert contents(life) == undisturbed


@pytest.mark.timeout(3600)
def test_a_driver_or_jvm_ended_by_sigkill_in_a_batch_leaves_the_tables_of_one_never_killed(
    filled: Path, undisturbed: Tables, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    life = shutil.copytree(filled, tmp_path / "life")
    (life / job.WORKER_DIED).touch()  # one that died would make the query begin anew
    stored = 0
    for moment, time, deed in KILLS:
        size = f"records={FEW if stored else BATCH}"
        code, said = lived(life, f"{moment}/{time}/{deed}", size)
        assert code == -signal.SIGKILL if deed == "kill all" else code > 0, said
        with Line(life, spark, metrics) as line:
            # What the transaction of a dead JVM's batch has come to depends on who is faster.
            before, stored = stored, line.applied()
        assert stored > before if moment == COMMITTED else stored >= before
    hits = [f"{moment}, {deed}" for moment, _, deed in KILLS]
    assert (life / job.HITS).read_text().splitlines() == hits
    assert stored < BATCHES * BATCH
    with Line(life, spark, metrics) as line:
        line.run()
        assert line.consumer.committed() == BATCHES * BATCH
    assert contents(life) == undisturbed


@pytest.mark.timeout(3600)
def test_a_driver_killed_alone_leaves_no_jvm_and_no_worker_and_the_tables_of_one_never_killed(
    filled: Path, undisturbed: Tables, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    life, said = shutil.copytree(filled, tmp_path / "life"), tmp_path / "said"
    (life / job.WORKER_DIED).touch()  # one that died would make the query begin anew
    fate = f"{COMMIT}/2/kill the driver"
    with said.open("w") as output, living(life, output, fate) as process:
        assert process.wait(LIFE_S) == -signal.SIGKILL, said.read_text()
    with orphans(life) as left:
        assert {"java"} < {*left}, "it had no JVM, or that no worker"
        for name, those in left.items():
            eventually(lambda those=those: all(map(has_ended, those)), ORPHANS_END_S, f"no {name}")
    with Line(life, spark, metrics) as line:
        assert line.applied() == BATCH
        line.run()
    assert contents(life) == undisturbed


def test_whoever_opens_the_file_of_the_dead_finds_whole_batches_only(
    filled: Path, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    life = shutil.copytree(filled, tmp_path / "life")
    images = Images(life, tmp_path)
    with Line(life, spark, metrics, images) as line:
        line.run(batches=2)
    whole = {batch: contents(image) for batch, image in images.whole.items()}
    whole[2] = contents(life)
    assert whole[0] != whole[1] != whole[2]
    assert len(images.taken) > 10
    for moment, batches, image in images.taken:
        assert contents(image) == whole[batches], f"half a batch {moment}"


class Images:
    """The storage as it is at many moments, each with the number of batches that were stored."""

    def __init__(self, life: Path, beside: Path) -> None:
        self._storage, self._beside = life / "storage", beside
        self._moments = self._batches = 0
        self.whole: dict[int, Path] = {}
        self.taken: list[tuple[str, int, Path]] = []

    def __call__(self, moment: str) -> None:
        self._moments += 1
        self._batches += moment == COMMITTED
        if moment == SEARCH:
            self.whole[self._batches] = self._image()
        elif moment != STATEMENT or self._moments % EACH == 0:
            self.taken.append((moment, self._batches, self._image()))

    def _image(self) -> Path:
        image = self._beside / str(self._moments)
        shutil.copytree(self._storage, image / "storage")
        return image

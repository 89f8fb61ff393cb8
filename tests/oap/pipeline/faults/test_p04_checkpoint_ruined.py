"""P4 to P6: a checkpoint as a power cut leaves it, as a bad disk does, put back from a copy, and
gone. The job starts by itself, says in one line why it goes on without it, and ends with the tables
of a run that nothing happened to.

The job's own start is run, in the session of these tests, so that a life costs no JVM.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import PLAN, SETTINGS
from oap.pipeline.faults.line import (
    COMMITTED,
    Fate,
    MortalStorage,
    Tables,
    Toll,
    contents,
    storage_of,
)
from oap.pipeline.faults.lives import LIFE_S
from oap.pipeline.faults.work import BATCH, BATCHES, NOW
from skyfarer.oap.pipeline import job as room
from skyfarer.oap.pipeline.session import SparkSettings
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.programs import eventually

pytestmark = pytest.mark.timeout(3600)

STORED = BATCHES - 1
"""Batches that are when the image is taken: of the last of them the commit is not written yet."""
OTHER = 20
"""Records of a batch after the checkpoint was lost."""
GARBAGE = b"\xff\x00 no such thing"
KINDS = ("offsets", "commits", "metadata")
"""All that Spark keeps of this source: files of these directories, and of this name."""


class Image(NamedTuple):
    """The files of a job in its last batch but one, and its checkpoint of a batch before."""

    life: Path
    older: Path


Ruin = Callable[[Image], None]


def checkpoint_of(life: Path) -> Path:
    return life / "spark" / "checkpoint"


def files(kind: str, checkpoint: Path) -> list[Path]:
    """With the sums that Spark keeps beside them."""
    found = [file for file in checkpoint.rglob("*") if file.is_file()]
    assert {file.parent.name for file in found} == {"offsets", "commits", "checkpoint"}
    chosen = [file for file in found if kind in (file.parent.name, file.name.strip(".")[:8])]
    assert len(chosen) >= 2
    return chosen


def overwritten(kind: str, text: bytes, image: Image) -> None:
    for file in files(kind, checkpoint_of(image.life)):
        file.write_bytes(text)


def halved(kind: str, image: Image) -> None:
    for file in files(kind, checkpoint_of(image.life)):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def deleted(kind: str, image: Image) -> None:
    for file in files(kind, checkpoint_of(image.life)):
        file.unlink()


def put_back(image: Image) -> None:
    lost(image)
    shutil.copytree(image.older, checkpoint_of(image.life))


def lost(image: Image) -> None:
    shutil.rmtree(checkpoint_of(image.life))


CASES: dict[str, Ruin] = {
    **{f"P4 {kind} empty": partial(overwritten, kind, b"") for kind in KINDS},
    **{f"P4 {kind} cut": partial(halved, kind) for kind in KINDS},
    **{f"P5 {kind} garbage": partial(overwritten, kind, GARBAGE) for kind in KINDS},
    **{f"P5 {kind} deleted": partial(deleted, kind) for kind in KINDS},
    "P5 stale": put_back,
    "P6 lost": lost,
}


def lived(
    life: Path, spark: SparkSession, records_max: int = BATCH, toll: Toll = lambda _: None
) -> None:
    """From the start of a job's query until the queue is stored. The session outlives it."""
    storage = MortalStorage(toll)
    storage.start(storage_of(life), UTC)
    settings = room.JobSettings(
        *(life / "queue", "analysis", SparkSettings(scratch=life / "spark")),
        records_max=records_max,
        splits=1,
        plan=PLAN,
        analysis=SETTINGS,
    )
    given_up = list[str]()
    job = room.AnalysisJob(
        *(settings, storage, storage, Registry(), Health(), HandClock(NOW), given_up.append),
        applied=lambda: None,
    )
    job._queue.start()
    job._consumer.start()
    job._session = spark
    job._query = job._start_query(spark, storage.applied(job._queue.queue_id))
    job._watch.start()

    def is_stored() -> bool:
        assert not given_up, given_up
        return job._consumer.committed() == BATCHES * BATCH

    try:
        eventually(is_stored, LIFE_S, "all that is queued is stored")
        job._query.processAllAvailable()
    finally:
        job._stopping.set()
        job._query.stop()
        job._watch.join()
        job._sink.close()
        job._consumer.stop()
        job._queue.stop()
        storage.stop()


@pytest.fixture(scope="module")
def image(filled: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Image:
    beside = tmp_path_factory.mktemp("image")
    life = shutil.copytree(filled, beside / "whole")
    image = Image(beside / "life", beside / "older")
    fates = (
        Fate(COMMITTED, STORED - 1, lambda: copied(checkpoint_of(life), image.older)),
        Fate(COMMITTED, STORED, lambda: copied(life, image.life)),
    )

    def toll(moment: str) -> None:
        for fate in fates:
            fate(moment)

    lived(life, spark, toll=toll)
    return image


def copied(directory: Path, to: Path) -> None:
    shutil.copytree(directory, to)


@pytest.mark.parametrize("case", CASES)
def test_whatever_has_become_of_the_checkpoint_the_job_says_why_it_goes_on_without_it_and_does(
    case: str,
    image: Image,
    undisturbed: Tables,
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    life = shutil.copytree(image.life, tmp_path / "life")
    CASES[case](Image(life, image.older))
    found = checkpoint_of(life).exists()
    with caplog.at_level(logging.INFO, room.__name__):
        lived(life, spark, OTHER if case == "P6 lost" else BATCH)
    assert contents(life) == undisturbed
    said = [record.message for record in caplog.records if record.name == room.__name__]
    begun = [line for line in said if line.startswith("analysis begins")]
    failed = [line for line in said if line.startswith("analysis failed")]  # on a busy machine
    assert len(said) == len(begun) + len(failed) and len(begun) == 1 + len(failed), said
    assert begun[0].startswith(f"analysis begins at record {STORED * BATCH} of queue ")
    assert begun[0].endswith(room.THROWN_AWAY if found else room.NONE_LEFT)

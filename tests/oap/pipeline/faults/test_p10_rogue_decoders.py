"""A decoder that ends its worker, loops or eats its memory at a record: the job finds the record,
has the other decoder read it or parks it, and analyses everything else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import NOON
from oap.pipeline.faults import job
from oap.pipeline.faults.line import Line, Tables, contents
from oap.pipeline.faults.lives import lived
from oap.pipeline.faults.work import BATCH, BATCHES, fill, laced, work
from oap.pipeline.rogues import Aborting, Hidden, Hungry, Looping, named
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.queue.skips import add_skip
from skyfarer.testing.traces import segment
from skyfarer.wire.rpc import Kind

pytestmark = pytest.mark.timeout(3600)

BROKEN = b"\xff\xff\xff\xff"
ROGUES = (Aborting, Looping, Hungry)


def sound(word: bytes) -> tuple[int, bytes]:
    """A segment that any other decoder can read."""
    one = segment("web", "web-0", word.decode(), NOON, 10, segment_id=f"poison-{word.decode()}")
    return Kind.SEGMENT, bytes(one.SerializeToString())


HIDDEN = sound(Hidden.word)
POISON = [
    *(record for one in ROGUES for record in (sound(one.word), (Kind.SEGMENT, one.word + BROKEN))),
    HIDDEN,
]
RECORDS = BATCH * BATCHES + len(POISON)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("poisoned")
    fill(directory, laced(work(), POISON))
    return directory


@pytest.fixture(scope="module")
def untroubled(
    poisoned: Path, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, metrics: Metrics
) -> tuple[Tables, list[bytes]]:
    """The tables of a run with sound decoders, and what it parked."""
    life = tmp_path_factory.mktemp("sound") / "life"
    shutil.copytree(poisoned, life)
    with Line(life, spark, metrics) as line:
        line.run()
        parked = [one.payload for one in line.storage.parked(line.reader.queue_id)]
    return contents(life, "parked_record"), parked


def run(poisoned: Path, life: Path, rogue: type, skip: int | None = None) -> str:
    shutil.copytree(poisoned, life)
    if skip is not None:
        add_skip(life / "queue", skip, "by an operator", keep_from=0)
    (life / job.WORKER_DIED).touch()  # one that died would be a failure of another kind
    code, said = lived(life, f"decoder={named(rogue)}")
    assert code == 0, said
    return said


@pytest.mark.parametrize("rogue", ROGUES)
def test_job_gives_deadly_records_to_the_other_decoder_and_analyses_all(
    rogue: type,
    poisoned: Path,
    untroubled: tuple[Tables, list[bytes]],
    spark: SparkSession,
    metrics: Metrics,
    tmp_path: Path,
) -> None:
    said = run(poisoned, tmp_path / "life", rogue)
    assert re.search(r"record \d+ \(1 in a row\): \S+: Python worker exited", said), said
    assert said.count("is read by the other decoder") == 2, said
    with Line(tmp_path / "life", spark, metrics) as line:
        parked = line.storage.parked(line.reader.queue_id)
    tables, payloads = untroubled
    assert [one.payload for one in parked] == payloads
    assert contents(tmp_path / "life", "parked_record") == tables


def test_job_parks_a_record_that_stops_it_and_the_one_that_an_operator_skips(
    poisoned: Path, spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    run(poisoned, tmp_path / "life", Hidden, skip=RECORDS - 1)
    with Line(tmp_path / "life", spark, metrics) as line:
        parked = line.storage.parked(line.reader.queue_id)
        progress = line.storage.progress(line.reader.queue_id)
    found = [one.payload for one in parked if one.reason.startswith("unanalysable: ")]
    assert found == [HIDDEN[1]]
    assert progress.next_sequence == RECORDS
    assert (progress.dropped["unanalysable"], progress.dropped["skipped"]) == (1, 1)
    assert (parked[-1].sequence, parked[-1].reason) == (RECORDS - 1, "skipped: by an operator")
    assert parked[-1].payload == work()[-1][1]

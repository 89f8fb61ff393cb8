"""An analysis job as a process of its own, whose fates are its arguments after the directory:
`moment/time/deed`, deeds being those of `DEEDS`, and `there:file:deed` or `gone:file:deed`, done as
soon as that file of the directory has come, or has come and gone; `records=number` is the bound of
its batches, `master=url` where Spark works, `decoder=name` the decoder, whose bounds are small. In
its second batch one worker of Python's dies; one that plans the first batch, or the executor that
reads it, if a file in the directory asks for it. What was done is written to `HITS` before it is.

Of its checkpoint it keeps as little as can be. It ends by itself: 0 when all that is queued is
stored, 3 when the job has given up.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

import psutil
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from oap.pipeline.bench import PLAN, SETTINGS
from oap.pipeline.faults.line import BEGIN, Fate, Killed, MortalStorage, Toll, storage_of
from oap.pipeline.faults.work import BATCH, NOW
from skyfarer.oap.pipeline import job as room
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sources.bounds import Bounds
from skyfarer.oap.pipeline.sources.queue import QueueSource, QueueStreamReader
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

DEADLINE_S = 1200
GIVEN_UP = 3
BOUNDS = Bounds(run_cpu_s=4.0, record_cpu_s=1.0)
WORKER_READS = "a worker reads"
WORKER_DIED = "a worker has died"
PLANNED = "a batch is planned"
EXECUTOR_DIES = "the executor that reads is to die"
PLANNER_DIES = "the planner of a batch is to die"
PLANNER_WAITS = "the planner of a batch is to wait for its end"
HITS = "hits"
ORPHANS = "orphans"
"""Names of files beside the queue."""
LOOK_EVERY_S = 0.001


class MortalReader(QueueStreamReader):
    """It shows when it has read something. Its worker dies once, half way through the second
    batch."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._beside = Path(options["directory"]).parent
        self._reads, self._died = self._beside / WORKER_READS, self._beside / WORKER_DIED

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        (self._beside / PLANNED).touch()
        with suppress(FileNotFoundError):
            (self._beside / PLANNER_DIES).unlink()
            note(self._beside, f"{PLANNED}, kill the planner")
            os.kill(os.getpid(), signal.SIGKILL)
        jvm = os.getppid()
        while (self._beside / PLANNER_WAITS).exists() and os.getppid() == jvm:
            time.sleep(LOOK_EVERY_S)
        return super().latestOffset(start, limit)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for rows in super().read(partition):
            yield rows
            self._reads.touch()
            with suppress(FileNotFoundError):
                (self._beside / EXECUTOR_DIES).unlink()
                note(self._beside, f"{WORKER_READS}, kill its executor")
                next(one for one in psutil.Process().parents() if is_executor(one)).kill()
            if getattr(partition, "start", 0) >= BATCH:
                with suppress(FileExistsError):
                    self._died.touch(exist_ok=False)
                    os.kill(os.getpid(), signal.SIGKILL)


class MortalSource(QueueSource):
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return MortalReader(self.options)


def note(directory: Path, hit: str) -> None:
    with (directory / HITS).open("a") as hits:
        hits.write(f"{hit}\n")


def is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # it has just ended
        return any("CoarseGrainedExecutorBackend" in word for word in process.cmdline())
    return False


def kill_all(_: Path) -> None:
    os.killpg(0, signal.SIGKILL)


def kill_driver(directory: Path) -> None:
    """This process alone. Whom it leaves behind is written down: it cannot be asked afterwards."""
    left = psutil.Process().children(recursive=True)
    lines = (f"{one.pid} {one.create_time()} {one.name()}\n" for one in left)
    (directory / ORPHANS).write_text("".join(lines))
    os.kill(os.getpid(), signal.SIGKILL)


def kill_jvm(_: Path) -> None:
    (jvm,) = [one for one in psutil.Process().children() if "java" in one.name()]
    jvm.kill()


def kill_workers(_: Path) -> None:
    """Whatever of Python the JVM has started."""
    (jvm,) = [one for one in psutil.Process().children() if "java" in one.name()]
    workers = jvm.children(recursive=True)
    assert workers, "nobody is there to be killed"
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            worker.kill()


def kill_executor(_: Path) -> None:
    """One that has workers, so has read something and keeps it."""
    (jvm,) = [one for one in psutil.Process().children() if "java" in one.name()]
    executors = [one for one in jvm.children(recursive=True) if is_executor(one)]
    next(one for one in executors if one.children()).kill()


def lose_checkpoint(directory: Path) -> None:
    shutil.rmtree(directory / "spark" / "checkpoint")


DEEDS: dict[str, Callable[[Path], None]] = {
    "kill all": kill_all,
    "kill the driver": kill_driver,
    "kill the JVM": kill_jvm,
    "kill the workers": kill_workers,
    "kill an executor": kill_executor,
    "lose the checkpoint": lose_checkpoint,
}


class Watch(threading.Thread):
    """Does its deed as soon as the file is there, or gone; what an earlier life has left there does
    not count. On a busy machine it may come late: no batch begins before it has looked."""

    def __init__(self, file: Path, deed: Callable[[], None], *, gone: bool) -> None:
        super().__init__(daemon=True)
        self._file, self._deed = file, deed
        self._changes = [False, True, False] if gone else [False, True]
        self._looking = threading.Lock()

    def run(self) -> None:
        while not self.is_done():
            time.sleep(LOOK_EVERY_S)

    def is_done(self) -> bool:
        with self._looking:
            if self._changes and self._file.exists() is self._changes[0]:
                del self._changes[0]
                if not self._changes:
                    self._deed()
            return not self._changes


def done(directory: Path, when: str, deed: str) -> None:
    note(directory, f"{when}, {deed}")
    DEEDS[deed](directory)


def watches(directory: Path, told: Sequence[str]) -> list[Watch]:
    return [
        Watch(directory / file, partial(done, directory, file, deed), gone=what == "gone")
        for what, file, deed in (one.split(":") for one in told)
    ]


def toll_of(directory: Path, told: Sequence[str], watching: Sequence[Watch]) -> Toll:
    split = [one.split("/") for one in told]
    fates = [
        Fate(moment, int(n), partial(done, directory, moment, deed)) for moment, n, deed in split
    ]

    def toll(moment: str) -> None:
        for fate in fates:
            fate(moment)
        if moment == BEGIN and any(watch.is_done() for watch in watching):
            raise Killed("whoever gave this batch is dead")

    return toll


def run(
    directory: Path, storage: MortalStorage, master: str, records_max: int, decoder: str
) -> int:
    settings = room.JobSettings(
        *(directory / "queue", "analysis"),
        SparkSettings(master, "512m", 1, directory / "spark"),
        records_max=records_max,
        splits=1,
        decoder=decoder,
        bounds=BOUNDS,
        plan=PLAN,
        analysis=SETTINGS,
    )
    given_up: SimpleQueue[str] = SimpleQueue()
    job = room.AnalysisJob(
        *(settings, storage, storage, Registry(), Health(), HandClock(NOW)),
        failed=given_up.put,
        applied=lambda: None,
    )
    # The job's own is the same: a process has one.
    session = spark_session(settings.spark)
    session.conf.set("spark.sql.streaming.minBatchesToRetain", "1")
    job.start()
    queue_id = job._queue.queue_id
    deadline = time.monotonic() + DEADLINE_S
    end = job._queue.writing()
    while storage.applied(queue_id) < end and time.monotonic() < deadline:
        with suppress(Empty):
            print(given_up.get(timeout=0.1), flush=True)
            os._exit(GIVEN_UP)  # there is no JVM to say goodbye to
    job.stop(30)
    return 0


def main(directory: Path, *told: str) -> int:
    room.QueueSource = MortalSource  # type: ignore[misc]
    given = dict(one.split("=", 1) for one in told if "=" in one)
    told = tuple(one for one in told if "=" not in one)
    files = [one for one in told if ":" in one]
    watching = watches(directory, files)
    for one in watching:
        one.start()
    fates = [one for one in told if one not in files]
    storage = MortalStorage(toll_of(directory, fates, watching))
    storage.start(storage_of(directory), UTC)
    try:
        master, size = given.get("master", "local[2]"), int(given.get("records", BATCH))
        return run(directory, storage, master, size, given.get("decoder", "ptars"))
    finally:
        storage.stop()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))

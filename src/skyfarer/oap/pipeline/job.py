"""The analysis job of a node: one session, one streaming query, from queue to storage.

Where to begin is asked of storage at every start; Spark's checkpoint is made anew each time, so a
lost, stale or damaged one cannot matter, and the log says so. A query that fails is started again
from what storage holds, after a pause that grows. A record that stops the analysis is found and
parked (`suspicion`). If the query fails that often without moving on, and no record is at fault, or
if the JVM is gone, the job reports itself dead through `failed` and the program ends.

Storage that is away, restarts or is full (RetryableError) is waited for, however long it takes: the
records are in the queue, and nothing is lost by it. Such failures are not counted.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skyfarer.base.backoff import Backoff, BackoffSettings
from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.storage import Writer
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.lag import Lag
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sink import BatchSink
from skyfarer.oap.pipeline.sources.bounds import Bounds
from skyfarer.oap.pipeline.sources.decode import opinions
from skyfarer.oap.pipeline.sources.probe import Culprit, probe
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.sources.rows import Reading
from skyfarer.oap.pipeline.suspicion import Suspicion
from skyfarer.oap.pipeline.told import Telling
from skyfarer.oap.pipeline.warmup import warm_up
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.queue.skips import SKIPPED, read_skips
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

FAILURES_MAX = 8
"""So many failures in a row at the same offset that are no record's fault, and the job gives up."""
PROBE_S = 300
"""For the probe; the records that it has found by then are parked, and the others come next."""
CONTROLS_MAX = 3
CONTROL_PAUSE_S = 1.0
"""Known records are tried again after a pause: after its workers were killed, Spark learns so by
the first that it asks."""
PART = "analysis"
THROWN_AWAY = "Spark's checkpoint is thrown away, since it may be damaged or older than that"
NONE_LEFT = "there is no checkpoint of Spark's"
CAUSE_CHARS_MAX = 500
_CAUSE = re.compile(r"^(?:Caused by: |: )?([\w.$]+(?:Error|Exception): .+)$", re.MULTILINE)
_GONE = (Py4JError, Py4JNetworkError, OSError)
"""What a call to Spark raises when its JVM is no more."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobSettings:
    queue_directory: Path
    consumer: str
    spark: SparkSettings
    records_max: int = 100_000
    splits: int = 2
    decoder: str = "ptars"
    bounds: Bounds = field(default_factory=Bounds)
    plan: Plan = field(default_factory=lambda: plan_of(shipped()))
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)


class AnalysisJob:
    """start() returns when the query runs; batches are then applied on Spark's own threads.

    `failed` is called once, when it gives up; `applied` after each batch that is durable. Both come
    on threads of its own and must not block.
    """

    def __init__(
        self,
        settings: JobSettings,
        storage: Writer,
        inventories: InventoryReader,
        registry: Registry,
        health: Health,
        clock: Clock,
        failed: Callable[[str], None],
        applied: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._registry = registry
        self._health = health
        self._failed = failed
        self._queue = Reader(settings.queue_directory)
        self._consumer = Consumer(settings.queue_directory, settings.consumer)
        self._metrics = Metrics(settings.plan, settings.analysis)
        self._told = applied
        self._lag = Lag(self._queue.writing, self._consumer.committed, clock)
        self._sink = BatchSink(
            storage,
            inventories,
            self._queue,
            self._consumer,
            self._metrics,
            settings.analysis,
            registry,
            clock,
            self._applied,
        )
        self._session: SparkSession | None = None
        self._query: StreamingQuery | None = None
        self._hindered = ""
        self._behind = False
        self._gave_up = False
        self._suspicion = Suspicion(
            settings.spark.scratch / "begun.json", settings.records_max, self._culprits
        )
        self._backoff = Backoff(BackoffSettings(initial_s=0.5, maximum_s=30.0), Random())
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._watch_query, name="analysis", daemon=True)

    def start(self) -> None:
        self._queue.start()
        self._consumer.start()
        self._registry.observe_with(table.PIPELINE_LAG_SECONDS, self._lag.look)
        self._session = spark_session(self._settings.spark)
        self._session.dataSource.register(QueueSource)
        self._exercise()
        start = self._storage.applied(self._queue.queue_id)
        self._suspicion.begin(self._queue.queue_id, start, self._queue.writing())
        self._query = self._start_query(self._session, start)
        self._health.set(PART, True)
        self._watch.start()

    def stop(self, timeout_s: float) -> None:
        """Lets the running batch end; what is not applied yet stays in the queue."""
        if self._session is None or self._stopping.is_set():
            return
        self._stopping.set()
        try:
            if self._query is not None:
                self._query.stop()
            if self._watch.is_alive():
                self._watch.join(timeout_s)
            self._session.stop()
        except _GONE as error:
            log.warning(
                "Spark ended before it was told to (%s), as it does when the whole process group"
                " gets the signal; what was not applied is still in the queue",
                type(error).__name__,
            )
        if not self._gave_up:
            self._suspicion.end()
        self._sink.close()
        self._consumer.stop()
        self._queue.stop()

    def _applied(self) -> None:
        self._lag.look()
        self._told()

    def _start_query(self, session: SparkSession, start: int) -> StreamingQuery:
        self._hindered = ""
        checkpoint = self._settings.spark.scratch / "checkpoint"
        left = checkpoint.exists()
        if left:
            shutil.rmtree(checkpoint)
        self._consumer.commit(start)
        log.info(
            "analysis begins at record %d of queue %s, which storage has reached; %s",
            *(start, self._queue.queue_id, THROWN_AWAY if left else NONE_LEFT),
        )
        rows = (
            session.readStream.format(QueueSource.name())
            .option("directory", str(self._settings.queue_directory))
            .option("start", start)
            .option("records_max", self._suspicion.records_max)
            .option("splits", self._settings.splits)
            .option("reading", self._reading().written())
            .load()
        )
        return (
            rows.writeStream.queryName("analysis")
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(self._take)
            .start()
        )

    def _reading(self) -> Reading:
        return Reading(
            opinions(self._settings.decoder),
            Telling.by(self._settings.analysis),
            self._skips() | self._suspicion.quarantined,
            self._suspicion.entrusted,
            self._settings.bounds,
        )

    def _skips(self) -> dict[int, str]:
        """The records that an operator has excluded. A list that cannot be read excludes none."""
        try:
            skips = read_skips(self._settings.queue_directory)
        except (PermanentError, RetryableError) as error:
            log.error("%s", error)
            return {}
        return {sequence: f"{SKIPPED}: {why}" for sequence, why in skips.items()}

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        """Spark tells of a failure as text; one that passes by itself is kept here in its words.
        The query ends where whole batches can be read again."""
        self._hindered = ""
        try:
            self._sink(batch, batch_id)
        except RetryableError as error:
            self._hindered = str(error)
            raise
        self._behind = self._suspicion.passed(self._consumer.committed())
        if self._behind:
            raise PermanentError("the stretch that failed is behind: whole batches are read again")

    def _watch_query(self) -> None:
        """The life of the watching thread: the program ends rather than run on unwatched."""
        try:
            self._follow_query()
        except BaseException as error:
            self._failed(f"analysis is no longer watched: {error!r}")
            raise

    def _follow_query(self) -> None:
        failures, failed_at = 0, -1
        while not self._stopping.is_set():
            ended, hindered = self._await_end(), self._hindered
            reason = hindered or ended
            if self._stopping.is_set():
                return
            if self._behind:
                self._behind = False
                if self._restart(0.0):
                    continue
            self._health.set(PART, False, reason)
            at = self._reached()
            if self._stopping.is_set():
                return
            if at != failed_at:
                failures, failed_at = 0, at
                self._backoff.reset()
            failures += not hindered
            log.error("analysis failed at record %d (%d in a row): %s", at, failures, reason)
            if not hindered and self._suspects(at, reason):
                failures = 0
                self._backoff.reset()
            if failures >= FAILURES_MAX or not self._restart(self._backoff.next_s()):
                self._gave_up = True
                self._failed(f"analysis cannot go on at record {at}: {reason}")
                return
            self._registry.inc(table.PIPELINE_RESTARTS)
            self._health.set(PART, True)

    def _suspects(self, at: int, reason: str) -> bool:
        """Returns whether a record may be at fault, so that the query reads otherwise from now on.
        No record is suspected while known records cannot be analysed either."""
        for _ in range(CONTROLS_MAX):
            try:
                self._exercise()
            except (PySparkException, *_GONE, SkyfarerError) as error:
                log.warning("known records cannot be analysed either: %s", _cause(error))
                if self._stopping.wait(CONTROL_PAUSE_S):
                    break
            else:
                return self._suspicion.failed(at, self._queue.writing(), reason)
        return False

    def _exercise(self) -> None:
        """Analyses known records; PermanentError where they come out otherwise."""
        assert self._session is not None
        warm_up(self._session, self._settings.spark.scratch, self._settings.splits, self._metrics)

    def _culprits(self, start: int, end: int) -> Sequence[Culprit]:
        """The records of the stretch that end the process which decodes them."""
        log.info("records %d to %d are decoded in a process of their own", start, end - 1)
        deadline_s = time.monotonic() + PROBE_S

        def over() -> bool:
            return self._stopping.is_set() or time.monotonic() > deadline_s

        try:
            return probe(self._settings.queue_directory, start, end, self._reading(), over)
        except OSError as error:
            log.error("no process can be started to look for a record at fault: %s", error)
            return []

    def _reached(self) -> int:
        """What storage has applied; waits for storage. -1 when the job is to stop meanwhile."""
        while True:
            try:
                return self._storage.applied(self._queue.queue_id)
            except RetryableError as error:
                self._health.set(PART, False, str(error))
                log.warning("analysis waits for storage: %s", error)
            if self._stopping.wait(self._backoff.next_s()):
                return -1

    def _await_end(self) -> str:
        assert self._query is not None
        try:
            self._query.awaitTermination()
        except PySparkException as error:
            return _cause(error)
        except _GONE as error:
            return f"Spark's JVM is gone ({type(error).__name__})"
        return "the query ended by itself"

    def _restart(self, pause_s: float) -> bool:
        """False when there is no JVM any more, or it refuses again and again; it may once, where
        its workers were killed: it learns that from the first that it asks."""
        for _ in range(FAILURES_MAX):
            if self._stopping.wait(pause_s):
                return True
            start = self._reached()
            if self._stopping.is_set():
                return True
            assert self._session is not None
            try:
                self._query = self._start_query(self._session, start)
            except (PySparkException, Py4JError, OSError) as error:
                log.error("analysis cannot be started again: %s", _cause(error))
            else:
                return True
            if not _answers(self._session):
                return False
            pause_s = self._backoff.next_s()
        return False


def _answers(session: SparkSession) -> bool:
    """Whether its JVM does."""
    jvm: Any = session._jvm
    try:
        return bool(jvm.System.currentTimeMillis())
    except _GONE:
        return False


def _cause(error: BaseException) -> str:
    """The root cause in the pages that Spark prints: the last line with an error and its text."""
    said = str(error)
    found = _CAUSE.findall(said)
    return (found[-1].strip() if found else said.partition("\n")[0])[:CAUSE_CHARS_MAX]

"""agent-analyzer.default: the Spark job from ingest queue to storage, and the ledger over both.

The plan of metrics is made when the services are offered: a mistake in a file is told before
anything listens, and whoever answers queries has the same plan as the analysis.

Spark is imported where it is started: loading it takes longer than all that may refuse a start
before it, a taken port among them. An Aggregator starts none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from skyfarer.oap.admin.door import Door, Verb
from skyfarer.oap.admin.parked import Analysis, ParkedDesk
from skyfarer.oap.admin.tasks import TaskDesk
from skyfarer.oap.admin.ttl import TtlDesk
from skyfarer.oap.boot.apdex import apdex_thresholds_ms
from skyfarer.oap.boot.definitions import plan_from
from skyfarer.oap.boot.gateways import gateway_addresses
from skyfarer.oap.boot.gen_ai import gen_ai_models
from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.providers.questions import Questions
from skyfarer.oap.boot.providers.receivers import IngestQueue
from skyfarer.oap.boot.providers.ttl import retention_of
from skyfarer.oap.boot.sampling import sampling_policies
from skyfarer.oap.boot.settings import AnalyzerConfig, CoreConfig, thresholds_ms
from skyfarer.oap.core.expiry import Retention, RetentionOverride
from skyfarer.oap.core.gen_ai import GenAIModels
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider
from skyfarer.oap.core.parked import ParkedRecords
from skyfarer.oap.core.sampling import Policy, Sampling
from skyfarer.oap.core.storage import Reader, Writer
from skyfarer.oap.core.tasks import TaskTables
from skyfarer.oap.core.told import StoredTasks
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.receivers.readmission import Readmission
from skyfarer.queue.reader import Reader as QueueReader
from skyfarer.telemetry.ledger import Ledger

if TYPE_CHECKING:
    from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings, SlowSettings
    from skyfarer.oap.pipeline.job import AnalysisJob, JobSettings


class Books:
    """The OAP's ledger: what the queue accepted against what storage says became of it."""

    def __init__(self) -> None:
        self._queue: QueueReader | None = None
        self._storage: Reader | None = None

    def open(self, queue: QueueReader, storage: Reader) -> None:
        self._queue, self._storage = queue, storage

    def ledger(self) -> Ledger:
        if self._queue is None or self._storage is None:
            return Ledger(0, 0, 0, {})
        applied = self._storage.progress(self._queue.queue_id)
        accepted = self._queue.writing()
        return Ledger(
            accepted, applied.delivered, accepted - applied.next_sequence, applied.dropped
        )


ANALYSIS = Module("agent-analyzer", (Books, Plan))


class AnalysisProvider(Provider):
    name = "default"
    module = ANALYSIS
    config = AnalyzerConfig
    requires = ("core", "storage", "receiver-sharing-server", "ttl")

    def __init__(self, config: AnalyzerConfig) -> None:
        self._config = config
        self._books = Books()
        self._plan = Plan(())
        self._gateways: frozenset[str] = frozenset()
        self._apdex_ms: dict[str, int] = {}
        self._sampling = Sampling()
        self._gen_ai = GenAIModels()
        self._queue: QueueReader | None = None
        self._job: AnalysisJob | None = None
        self._parked: ParkedDesk | None = None
        self._door: Door | None = None

    def prepare(self, offer: Offer) -> None:
        self._gateways = gateway_addresses(self._config.gatewaysFile)
        self._apdex_ms = apdex_thresholds_ms(self._config.apdexThresholdFile)
        self._gen_ai = gen_ai_models(self._config.genAIConfigFile)
        self._sampling = sampling_policies(
            self._config.traceSamplingPolicySettingsFile,
            Policy(self._config.sampleRate, self._config.slowTraceSegmentThreshold),
            self._config.forceSampleErrorSegment,
        )
        self._plan = plan_from(self._config.oalActiveFiles, self._config.oalFiles)
        offer(Books, self._books)
        offer(Plan, self._plan)

    def start(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        storage = modules.find("storage")
        tasks = TaskDesk(storage.service(TaskTables), node.clock)
        if node.receives:
            self._analyse(node, modules)
        ttl = modules.find("ttl").service(TtlDesk)
        verbs = {**self._verbs(node, modules), **tasks.verbs, **ttl.verbs}
        self._door = Door(node.data_directory, verbs)
        self._door.start()

    def _analyse(self, node: Node, modules: ModuleHolder) -> None:
        from skyfarer.oap.pipeline.job import AnalysisJob

        ingest = modules.find("receiver-sharing-server").service(IngestQueue)
        storage = modules.find("storage")
        self._queue = QueueReader(ingest.directory)
        self._queue.start()
        self._books.open(self._queue, storage.service(Reader))
        questions = modules.find("receiver-sharing-server").service(Questions)
        tasks = StoredTasks(storage.service(TaskTables), node.clock)
        questions.answer(node, storage.service(InventoryReader), tasks)
        self._job = AnalysisJob(
            self.settings(node, ingest, retention_of(node, storage.service(RetentionOverride))),
            storage.service(Writer),
            storage.service(InventoryReader),
            node.registry,
            node.health,
            node.clock,
            node.fail,
            applied=questions.applied,
        )
        self._job.start()

    def _verbs(self, node: Node, modules: ModuleHolder) -> Mapping[str, Verb]:
        """For commands on this machine, once there is something to answer with."""
        if self._queue is None:
            return {}
        storage, receivers = modules.find("storage"), modules.find("receiver-sharing-server")
        queue_id = self._queue.queue_id
        applied = partial(storage.service(Writer).applied, queue_id)
        self._parked = ParkedDesk(
            storage.service(ParkedRecords),
            receivers.service(Readmission).readmit,
            Analysis(queue_id, applied),
            node.registry,
            node.clock,
        )
        return self._parked.verbs

    def stop(self, timeout_s: float) -> None:
        if self._parked is not None:
            self._parked.close()
        if self._door is not None:
            self._door.stop(timeout_s)
        if self._job is not None:
            self._job.stop(timeout_s)
        if self._queue is not None:
            self._queue.stop()

    def settings(self, node: Node, ingest: IngestQueue, retention: Retention) -> JobSettings:
        """What the job is started with; whole once everything is prepared."""
        from skyfarer.oap.pipeline.job import JobSettings
        from skyfarer.oap.pipeline.session import SparkSettings

        return JobSettings(
            queue_directory=ingest.directory,
            consumer=ingest.consumer,
            spark=SparkSettings(
                master=self._config.sparkMaster,
                driver_memory=self._config.driverMemory,
                shuffle_partitions=self._config.shufflePartitions,
                scratch=node.data_directory / "spark",
            ),
            records_max=self._config.batchRecordsMax,
            decoder=self._config.decoder,
            splits=_parallelism(self._config.sparkMaster),
            plan=self._plan,
            analysis=self.analysis(node.config, retention),
        )

    def analysis(self, core: CoreConfig, retention: Retention) -> AnalysisSettings:
        """What the analysis itself is told, of the configuration and the files it names."""
        from skyfarer.oap.pipeline.analysis.settings import (
            AnalysisSettings,
            KeptSettings,
            NamingSettings,
        )

        return AnalysisSettings(
            naming=NamingSettings(
                core.serviceNameMaxLength, core.instanceNameMaxLength, core.endpointNameMaxLength
            ),
            gateways=self._gateways,
            no_upstream_components=self._config.noUpstreamRealAddressAgents,
            trace_analysis=self._config.traceAnalysis,
            retention=retention,
            apdex_ms=self._apdex_ms,
            kept=KeptSettings(
                failed_by=self._config.segmentStatusAnalysisStrategy,
                searchable_tags=core.searchableTracesTags,
                searchable_log_tags=core.searchableLogsTags,
                slow=self._slow(),
            ),
            sampling=self._sampling,
            gen_ai=self._gen_ai,
        )

    def _slow(self) -> SlowSettings:
        from skyfarer.oap.pipeline.analysis.settings import SlowSettings

        keys = ("slowDBAccessThreshold", "slowCacheReadThreshold", "slowCacheWriteThreshold")
        return SlowSettings(*(thresholds_ms(key, getattr(self._config, key)) for key in keys))


def _parallelism(master: str) -> int:
    """Into how many tasks a large batch is cut: the threads of a local master, else the cores."""
    threads = re.fullmatch(r"local\[(\d+)\]", master)
    return int(threads.group(1)) if threads else os.cpu_count() or 1

"""receiver-sharing-server.default: the receiver process and its ingest queue."""

from __future__ import annotations

from pathlib import Path

from skyfarer.oap.boot.listening import listen
from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.providers.questions import Questions
from skyfarer.oap.boot.settings import SharingServerConfig
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.queue.capacity import Watch

ANALYSIS_CONSUMER = "analysis"


class IngestQueue:
    """Where the receivers append; `directory` is known from `listen`, and there from `start` on."""

    consumer = ANALYSIS_CONSUMER
    directory: Path


RECEIVERS = Module("receiver-sharing-server", (IngestQueue, Questions))


class ReceiverProvider(Provider):
    name = "default"
    module = RECEIVERS
    config = SharingServerConfig
    requires = ("core",)

    def __init__(self, config: SharingServerConfig) -> None:
        self._config = config
        self._queue = IngestQueue()
        self._questions = Questions()
        self._supervisor: Supervisor | None = None

    def prepare(self, offer: Offer) -> None:
        offer(IngestQueue, self._queue)
        offer(Questions, self._questions)

    def listen(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        self._queue.directory = node.data_directory / "ingest"
        settings = ReceiverSettings(
            directory=str(self._queue.directory),
            consumers=(self._queue.consumer,),
            segment_bytes=self._config.queueSegmentBytes,
            capacity_bytes=self._config.queueCapacityBytes,
            record_bytes_max=min(node.config.maxMessageSize, self._config.queueSegmentBytes // 2),
            streams_max=node.config.maxConcurrentCallsPerConnection,
        )
        listener = listen(node.config.gRPCHost, node.config.gRPCPort, "agents", "SW_CORE_GRPC")
        answering = self._questions.open(node, self._config.registrationHoldBackMs / 1000)
        self._supervisor = Supervisor(
            settings, listener, node.registry, node.health, answering=answering
        )

    def start(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        assert self._supervisor is not None
        self._supervisor.start()
        Watch(self._queue.directory, node.clock).register(node.registry, "ingest")

    @property
    def port(self) -> int:
        return self._supervisor.port if self._supervisor else 0

    def stop(self, timeout_s: float) -> None:
        if self._supervisor is not None:
            self._supervisor.stop(timeout_s)

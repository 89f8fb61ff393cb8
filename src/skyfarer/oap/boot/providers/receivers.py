"""receiver-sharing-server.default: the receiver process and its ingest queue."""

from __future__ import annotations

from pathlib import Path

from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.settings import SharingServerConfig
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor

ANALYSIS_CONSUMER = "analysis"


class IngestQueue:
    """Where the receivers append; there from `start` on."""

    consumer = ANALYSIS_CONSUMER
    directory: Path


RECEIVERS = Module("receiver-sharing-server", (IngestQueue,))


class ReceiverProvider(Provider):
    name = "default"
    module = RECEIVERS
    config = SharingServerConfig
    requires = ("core",)

    def __init__(self, config: SharingServerConfig) -> None:
        self._config = config
        self._queue = IngestQueue()
        self._supervisor: Supervisor | None = None

    def prepare(self, offer: Offer) -> None:
        offer(IngestQueue, self._queue)

    def start(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        self._queue.directory = node.data_directory / "ingest"
        settings = ReceiverSettings(
            directory=str(self._queue.directory),
            consumers=(self._queue.consumer,),
            segment_bytes=self._config.queueSegmentBytes,
            capacity_bytes=self._config.queueCapacityBytes,
            record_bytes_max=min(node.config.maxMessageSize, self._config.queueSegmentBytes // 2),
            host=node.config.gRPCHost,
            port=node.config.gRPCPort,
            streams_max=node.config.maxConcurrentCallsPerConnection,
        )
        self._supervisor = Supervisor(settings, node.registry, node.health)
        self._supervisor.start()

    @property
    def port(self) -> int:
        return self._supervisor.port if self._supervisor else 0

    def stop(self, timeout_s: float) -> None:
        if self._supervisor is not None:
            self._supervisor.stop(timeout_s)

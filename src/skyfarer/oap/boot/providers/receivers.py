"""receiver-sharing-server.default: the receiver process, its ports and its ingest queue.

An Aggregator has none of them: there the services are offered, and nobody is behind them."""

from __future__ import annotations

import socket
from pathlib import Path

from skyfarer.oap.boot.listening import listen
from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.providers.questions import Questions
from skyfarer.oap.boot.settings import (
    ANALYSIS_CONSUMER,
    INGEST_DIRECTORY,
    CoreConfig,
    SharingServerConfig,
)
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider
from skyfarer.oap.receivers.access import AccessSettings, TlsFiles
from skyfarer.oap.receivers.collecting import CollectSettings
from skyfarer.oap.receivers.front import Front
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.readmission import Readmission
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.queue.capacity import Watch

SOCKET = "receiver.sock"


class IngestQueue:
    """Where the receivers append; `directory` is known from `listen`, and there from `start` on."""

    consumer = ANALYSIS_CONSUMER
    directory: Path


class Posted:
    """What core's HTTP port passes on to the receiver; known from `listen`. `front` is None when
    the receiver has a port of its own for it."""

    front: Front | None = None


RECEIVERS = Module("receiver-sharing-server", (IngestQueue, Posted, Questions, Readmission))


class ReceiverProvider(Provider):
    name = "default"
    module = RECEIVERS
    config = SharingServerConfig
    requires = ("core",)

    def __init__(self, config: SharingServerConfig) -> None:
        self._config = config
        self._queue = IngestQueue()
        self._posted = Posted()
        self._questions = Questions()
        self._readmission = Readmission()
        self._supervisor: Supervisor | None = None
        self.http_port = 0

    def prepare(self, offer: Offer) -> None:
        offer(IngestQueue, self._queue)
        offer(Posted, self._posted)
        offer(Questions, self._questions)
        offer(Readmission, self._readmission)

    def listen(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        if not node.receives:
            return
        access = _access(self._config, node.config)
        access.check()
        self._queue.directory = node.data_directory / INGEST_DIRECTORY
        listener, http_listener = self._listeners(node.config)
        if http_listener is None:
            self._posted.front = Front(node.data_directory / SOCKET)
        else:
            self.http_port = http_listener.getsockname()[1]
        settings = self.settings(node, access)
        answering = self._questions.open(node, self._config.registrationHoldBackMs / 1000)
        self._supervisor = Supervisor(
            *(settings, listener, node.registry, node.health),
            http_listener=http_listener,
            answering=answering,
            readmission=self._readmission,
        )

    def start(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        if self._supervisor is None:
            return
        self._supervisor.start()
        Watch(self._queue.directory, node.clock).register(node.registry, "ingest")

    @property
    def port(self) -> int:
        return self._supervisor.port if self._supervisor else 0

    def stop(self, timeout_s: float) -> None:
        if self._supervisor is not None:
            self._supervisor.stop(timeout_s)

    def _listeners(self, core: CoreConfig) -> tuple[socket.socket, socket.socket | None]:
        config = self._config
        if config.gRPCPort:
            listener = listen(config.gRPCHost, config.gRPCPort, "agents", "SW_RECEIVER_GRPC")
        else:
            listener = listen(core.gRPCHost, core.gRPCPort, "agents", "SW_CORE_GRPC")
        if not config.restPort:
            return listener, None
        try:
            return listener, listen(
                *(config.restHost, config.restPort, "agents", "SW_RECEIVER_SHARING_REST")
            )
        except BaseException:
            listener.close()
            raise

    def settings(self, node: Node, access: AccessSettings) -> ReceiverSettings:
        """What the receiver's process is told, of this configuration and core's."""
        config = self._config
        grpc = config if config.gRPCPort else node.config
        return ReceiverSettings(
            directory=str(self._queue.directory),
            consumers=(self._queue.consumer,),
            segment_bytes=config.queueSegmentBytes,
            capacity_bytes=config.queueCapacityBytes,
            record_bytes_max=min(grpc.maxMessageSize, config.queueSegmentBytes // 2),
            durability=config.queueDurability,
            flush_period_ms=config.queueFlushPeriodMs,
            flush_count=config.queueFlushCount,
            streams_max=grpc.maxConcurrentCallsPerConnection,
            collect=CollectSettings(
                socket="" if config.restPort else str(node.data_directory / SOCKET),
                body_bytes_max=config.httpMaxRequestBodySize,
                header_bytes_max=config.httpMaxRequestHeaderSize,
                idle_timeout_s=config.restIdleTimeOut / 1000,
            ),
            access=access,
            refuse_malformed=config.refuseMalformed,
        )


def _access(config: SharingServerConfig, core: CoreConfig) -> AccessSettings:
    grpc_tls = http_tls = TlsFiles()
    if config.gRPCSslEnabled:
        grpc_tls = _files(
            config.gRPCSslCertChainPath, config.gRPCSslKeyPath, config.gRPCSslTrustedCAsPath
        )
    elif core.gRPCSslEnabled and not config.gRPCPort:
        grpc_tls = _files(core.gRPCSslCertChainPath, core.gRPCSslKeyPath)
    if config.restSSLEnabled:
        http_tls = _files(
            config.restSSLCertChainPath, config.restSSLKeyPath, config.restSSLTrustedCAsPath
        )
    return AccessSettings(
        grpc_tls, http_tls, config.authentication, _text(config.authenticationFile)
    )


def _files(certificate: Path | None, key: Path | None, authorities: Path | None = None) -> TlsFiles:
    return TlsFiles(_text(certificate), _text(key), _text(authorities))


def _text(path: Path | None) -> str:
    return str(path.absolute()) if path is not None else ""

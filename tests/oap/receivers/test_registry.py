"""The registry through the modules of the OAP: receiver and storage, and what joins them."""

from __future__ import annotations

import threading
from pathlib import Path

import grpc
import pyarrow as pa

from oap.receivers.answers.shelf import inventory_of
from oap.receivers.no_tasks import NothingConfigured
from skyfarer.oap.boot.providers.cluster import StandaloneProvider
from skyfarer.oap.boot.providers.core import CoreProvider, Node
from skyfarer.oap.boot.providers.questions import Questions
from skyfarer.oap.boot.providers.receivers import IngestQueue, ReceiverProvider
from skyfarer.oap.boot.providers.storage import DuckDBProvider
from skyfarer.oap.boot.settings import CoreConfig, DuckDBConfig, NoKeys, SharingServerConfig
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.modules import Module, ModuleHolder, Modules, Provider
from skyfarer.oap.core.storage import Analysed, Writer
from skyfarer.queue.reader import Reader
from skyfarer.wire.messages import v2_register

NO_SEGMENTS = pa.schema({"segment_id": pa.string(), "minute": pa.int64()}).empty_table()


class Registry(Provider):
    """What the analysis does for registrations, without Spark."""

    name = "test"
    module = Module("registry")
    config = NoKeys
    requires = ("core", "storage", "receiver-sharing-server")

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        self._queue = Reader(modules.find("receiver-sharing-server").service(IngestQueue).directory)
        self._queue.start()
        self._questions = modules.find("receiver-sharing-server").service(Questions)
        self._storage = modules.find("storage").service(Writer)
        inventories = modules.find("storage").service(InventoryReader)
        self._questions.answer(node, inventories, NothingConfigured())
        self._thread.start()

    def stop(self, _timeout_s: float) -> None:
        self._stopping.set()
        self._thread.join()
        self._queue.stop()

    def _run(self) -> None:
        partition = self._queue.queue_id
        while not self._stopping.wait(0.05):
            first, end = self._storage.applied(partition), self._queue.writing()
            if first < end:
                runs = self._queue.runs(first, end)
                found = {inventory_of(bytes(p)) for run in runs for p in run.payloads()}
                self._storage.apply(
                    Analysed(
                        partition=partition,
                        first=first,
                        end=end,
                        segments=NO_SEGMENTS,
                        metrics={},
                        inventories=list(found),
                    )
                )
                self._questions.applied()


def test_a_v2_agent_gets_all_its_ids_from_storage(tmp_path: Path) -> None:
    core = CoreProvider(CoreConfig(gRPCPort=0, dataDirectory=tmp_path, serviceNameMaxLength=4))
    receiver = ReceiverProvider(SharingServerConfig(registrationHoldBackMs=20_000))
    storage = DuckDBProvider(DuckDBConfig())
    modules = Modules([StandaloneProvider(NoKeys()), core, storage, receiver, Registry()])
    modules.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
            service = v2_register.ServiceRegisterMapping.FromString(
                channel.unary_unary("/Register/doServiceRegister")(
                    v2_register.Services(
                        services=[v2_register.Service(serviceName="shop-x")]
                    ).SerializeToString(),
                    timeout=60,
                )
            ).services[0]
            assert (service.key, service.value) == ("shop-x", 2)
            addresses = v2_register.NetAddressMapping.FromString(
                channel.unary_unary("/Register/doNetworkAddressRegister")(
                    v2_register.NetAddresses(addresses=["db:1", "db:2"]).SerializeToString(),
                    timeout=60,
                )
            ).addressIds
            assert {one.key for one in addresses} == {"db:1", "db:2"}
            assert {one.value for one in addresses} == {2, 3}
    finally:
        assert modules.stop(30) == []

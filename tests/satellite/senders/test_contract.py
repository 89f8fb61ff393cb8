"""Both clients against the contract of a forwarder, each with the real other end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random

import grpc
import pytest

from contracts.forwarder_contract import RECORDS_MAX, ForwarderContract
from skyfarer.satellite.senders.calls import rpc_of
from skyfarer.satellite.senders.grpc import GrpcForwarder
from skyfarer.satellite.senders.grpc_config import GrpcClientConfig
from skyfarer.satellite.senders.kafka import KafkaForwarder
from skyfarer.satellite.senders.kafka_config import KafkaClientConfig
from skyfarer.satellite.senders.topics import topic_of
from skyfarer.telemetry.metrics import Registry
from third_parties.grpc_upstream import Call, GrpcUpstream
from third_parties.kafka import Broker

REFUSED = b"\x0a\x07refused"
NAMESPACES = count()


class GrpcBench:
    def __init__(self, upstreams: list[GrpcUpstream]) -> None:
        self._upstreams = upstreams
        for upstream in upstreams:
            upstream.answer = self._answer
        config = GrpcClientConfig(server_addr=",".join(one.address for one in upstreams))
        self.forwarder = GrpcForwarder(
            config, lambda: "queue", RECORDS_MAX, Registry(), random=Random(1)
        )

    def held(self, kind: int) -> list[bytes]:
        path = rpc_of(kind).path
        calls = [call for one in self._upstreams for call in one.calls if call.path == path]
        return [message for call in calls for message in call.messages]

    def prepare(self, kinds: Sequence[int]) -> None:
        """Any call is welcome."""

    def leave(self) -> None:
        for upstream in self._upstreams:
            upstream.stop()

    def come_back(self) -> None:
        for upstream in self._upstreams:
            upstream.start()

    def refused(self) -> bytes:
        return REFUSED

    def _answer(self, call: Call, context: grpc.ServicerContext) -> bytes:
        if REFUSED in call.messages:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not this one")
        return b""


class TestGrpcClient(ForwarderContract):
    @pytest.fixture
    def bench(self, upstream: Callable[..., GrpcUpstream]) -> GrpcBench:
        return GrpcBench([upstream()])


class TestGrpcClientOfThreeUpstreams(ForwarderContract):
    @pytest.fixture
    def bench(self, upstream: Callable[..., GrpcUpstream]) -> GrpcBench:
        return GrpcBench([upstream() for _ in range(3)])


class KafkaBench:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._namespace = f"contract{next(NAMESPACES)}"
        config = KafkaClientConfig(
            brokers=broker.address, namespace=self._namespace, timeout="1s", max_message_bytes=9_000
        )
        self.forwarder = KafkaForwarder(config, lambda: "queue", RECORDS_MAX, Registry())

    def held(self, kind: int) -> list[bytes]:
        messages = self._broker.read(f"{self._namespace}-{topic_of(kind).name}")
        return [message.value() or b"" for message in messages]

    def prepare(self, kinds: Sequence[int]) -> None:
        self._broker.create(*{f"{self._namespace}-{topic_of(kind).name}" for kind in kinds})

    def leave(self) -> None:
        self._broker.pause()

    def come_back(self) -> None:
        self._broker.resume()

    def refused(self) -> bytes:
        return b"\x0a\xd0\x8c\x01" + bytes(18_000)


class TestKafkaClient(ForwarderContract):
    @pytest.fixture
    def bench(self, broker: Broker, tmp_path: Path) -> Iterator[KafkaBench]:
        yield KafkaBench(broker)
        broker.resume()

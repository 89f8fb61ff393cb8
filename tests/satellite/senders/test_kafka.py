"""The Kafka client against a real broker, read by a real consumer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trustme

from contracts.forwarder_contract import settled
from skyfarer.base.binding import bind
from skyfarer.base.errors import ConfigError, PermanentError, RetryableError
from skyfarer.satellite.contracts import AccessDenied, Batch
from skyfarer.satellite.senders.kafka import KafkaForwarder
from skyfarer.satellite.senders.kafka_config import KafkaClientConfig, SaslConfig
from skyfarer.satellite.senders.topics import TOPICS, topic_of
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.traces import segment
from skyfarer.wire import messages
from skyfarer.wire.messages import InstancePingPkg, InstanceProperties, SegmentObject
from skyfarer.wire.rpc import Kind
from third_parties.kafka import Broker

WAIT_S = 90.0
NAMES = count()


class Rig:
    def __init__(self, broker: Broker, **config: Any) -> None:
        self.broker = broker
        self.namespace = f"rig{next(NAMES)}"
        self.registry = Registry()
        made = KafkaClientConfig(
            **{"brokers": broker.address, "namespace": self.namespace, "timeout": "500ms", **config}
        )
        self.forwarder = KafkaForwarder(made, lambda: "queue-7", 500, self.registry)

    def play(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            await self.forwarder.start()
            try:
                async with asyncio.timeout(WAIT_S):
                    await scenario()
            finally:
                await self.forwarder.stop(5.0)

        asyncio.run(whole())

    async def insist(self, batch: Batch) -> int:
        """As a sender does; how often it had to come back."""
        for failures in count():
            try:
                await self.forwarder.send(batch)
            except RetryableError:
                await asyncio.sleep(0.05)
            else:
                return failures
        return 0

    async def denial(self) -> str:
        """What is said once the broker has refused us; until then it is merely late."""
        while True:
            try:
                await self.forwarder.send(Batch(0, Kind.LOG, (b"a",)))
            except AccessDenied as denied:
                return str(denied)
            except RetryableError:
                continue

    def topic(self, name: str) -> str:
        return f"{self.namespace}-{name}"

    def held(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        return [(one.key(), one.value()) for one in self.broker.read(self.topic(topic))]

    def headers(self, topic: str) -> list[dict[str, str]]:
        found = self.broker.read(self.topic(topic))
        return [{name: value.decode() for name, value in one.headers() or ()} for one in found]


def made() -> dict[int, bytes]:
    """One record of each kind that an OAP reads from Kafka."""
    snapshot = messages.profile.ThreadSnapshot(taskId="task-1", traceSegmentId="s", sequence=3)
    jvm = messages.runtime.JVMMetricCollection(service="shop", serviceInstance="shop-1")
    log = messages.log.LogData(service="shop", serviceInstance="shop-1", endpoint="/pay")
    ping = InstancePingPkg(service="shop", serviceInstance="shop-1")
    properties = InstanceProperties(service="shop", serviceInstance="shop-1", layer="GENERAL")
    collection = messages.meter.MeterDataCollection(meterData=[meter("shop-2", "cpu")])
    return {
        Kind.SEGMENT: segment("shop", "shop-1", "/pay", 1_700_000_000_000, 7).SerializeToString(),
        Kind.INSTANCE_PROPERTIES: properties.SerializeToString(),
        Kind.INSTANCE_PING: ping.SerializeToString(),
        Kind.JVM_METRICS: jvm.SerializeToString(),
        Kind.METER: meter("shop-1", "memory").SerializeToString(),
        Kind.METER_COLLECTION: collection.SerializeToString(),
        Kind.LOG: log.SerializeToString(),
        Kind.PROFILE_SNAPSHOT: snapshot.SerializeToString(),
    }


def meter(instance: str, name: str) -> Any:
    single = messages.meter.MeterSingleValue(name=name, value=1)
    return messages.meter.MeterData(
        singleValue=single, service="shop", serviceInstance=instance, timestamp=10
    )


def test_topics_keys_and_values_are_those_an_oap_reads(broker: Broker) -> None:
    rig, records = Rig(broker), made()
    assert set(records) == set(TOPICS)

    async def scenario() -> None:
        for number, (kind, payload) in enumerate(records.items()):
            await rig.insist(Batch(number, kind, (payload,)))

    broker.create(*{rig.topic(topic.name) for topic in TOPICS.values()})
    rig.play(scenario)
    segment_id = SegmentObject.FromString(records[Kind.SEGMENT]).traceSegmentId.encode()
    assert rig.held("skywalking-segments") == [(segment_id, records[Kind.SEGMENT])]
    assert sorted(rig.held("skywalking-managements"), key=lambda one: one[0] or b"") == [
        (b"register-shop-1", records[Kind.INSTANCE_PROPERTIES]),
        (b"shop-1", records[Kind.INSTANCE_PING]),
    ]
    assert rig.held("skywalking-metrics") == [(b"shop-1", records[Kind.JVM_METRICS])]
    assert rig.held("skywalking-logs") == [(b"shop", records[Kind.LOG])]
    assert rig.held("skywalking-profilings") == [(b"task-1", records[Kind.PROFILE_SNAPSHOT])]
    packed = messages.meter.MeterDataCollection(meterData=[meter("shop-1", "memory")])
    assert sorted(rig.held("skywalking-meters"), key=lambda one: one[0] or b"") == [
        (b"shop-1", packed.SerializeToString()),
        (b"shop-2", records[Kind.METER_COLLECTION]),
    ]


def test_without_a_namespace_the_topics_have_their_plain_names(broker: Broker) -> None:
    rig = Rig(broker, namespace="")

    async def scenario() -> None:
        await rig.insist(Batch(0, Kind.LOG, (made()[Kind.LOG],)))

    rig.play(scenario)
    assert [one.value() for one in broker.read("skywalking-logs")] == [made()[Kind.LOG]]


def test_single_meters_of_one_moment_are_one_record(broker: Broker) -> None:
    rig = Rig(broker)
    meters = [meter("shop-1", "cpu"), meter("shop-2", "cpu"), meter("shop-1", "memory")]

    async def scenario() -> None:
        sent = tuple(one.SerializeToString() for one in meters)
        await rig.insist(Batch(4, Kind.METER, sent))

    rig.play(scenario)
    found = {
        key: messages.meter.MeterDataCollection.FromString(value or b"")
        for key, value in rig.held("skywalking-meters")
    }
    assert list(found[b"shop-1"].meterData) == [meters[0], meters[2]]
    assert list(found[b"shop-2"].meterData) == [meters[1]]
    numbers = sorted(one["skyfarer-sequences"] for one in rig.headers("skywalking-meters"))
    assert numbers == ["(0,2)", "1"]


def test_a_record_says_which_one_it_is_of_which_queue_so_that_a_resend_is_known(
    broker: Broker,
) -> None:
    rig = Rig(broker)

    async def scenario() -> None:
        kept = Batch(40, Kind.LOG, (b"a", b"b"), kept=(41, 47), beyond=50)
        await rig.insist(kept)
        await rig.insist(Batch(41, Kind.LOG, (b"made by a filter",), emitted=True))

    rig.play(scenario)
    base = {"skyfarer-producer": "queue-7", "skyfarer-first-sequence": "40"}
    found = sorted(rig.headers("skywalking-logs"), key=str)
    assert found == [
        {**base, "skyfarer-sequences": "1"},
        {**base, "skyfarer-sequences": "7"},
        {},
    ]


def test_a_kind_that_no_oap_reads_from_kafka_has_a_topic_of_its_own(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(broker)
    source = messages.event.Source(service="shop", serviceInstance="shop-1")
    event = messages.event.Event(uuid="e", source=source).SerializeToString()

    async def scenario() -> None:
        await rig.insist(Batch(0, Kind.EVENT, (event,)))
        await rig.insist(Batch(1, Kind.EVENT, (event,)))

    rig.play(scenario)
    assert rig.held("skyfarer-event") == [(b"shop-1", event)] * 2
    assert len([line for line in caplog.messages if "skyfarer-event" in line]) == 1


def test_a_record_the_broker_refuses_is_found_and_the_others_are_held_once(broker: Broker) -> None:
    """The broker takes less for this topic than the client would send, and refuses all the records
    it got in one piece."""
    rig = Rig(broker)
    broker.create(rig.topic("skywalking-logs"), partitions=2, max_message_bytes="2000")
    small, large = [b"small %d" % number for number in range(9)], bytes(5_000)
    batch = Batch(1, Kind.LOG, (*small[:2], large, *small[2:]))

    async def scenario() -> None:
        await rig.insist(Batch(0, Kind.LOG, (b"warm",)))
        assert await settled(rig.forwarder, batch) == [large]

    rig.play(scenario)
    arrived = [value or b"" for _, value in rig.held("skywalking-logs")]
    assert sorted(arrived) == sorted([*small, b"warm"])


def test_a_broker_that_is_away_for_long_gets_each_record_once(broker: Broker) -> None:
    rig = Rig(broker, timeout="300ms")
    sent = [b"record %d" % number for number in range(300)]

    async def scenario() -> None:
        await rig.insist(Batch(0, Kind.LOG, tuple(sent[:10])))
        broker.pause()
        late = asyncio.create_task(rig.insist(Batch(10, Kind.LOG, tuple(sent[10:]))))
        await asyncio.sleep(2.0)
        broker.resume()
        assert await late >= 2

    try:
        rig.play(scenario)
    finally:
        broker.resume()
    assert sorted(value or b"" for _, value in rig.held("skywalking-logs")) == sorted(sent)
    topic = rig.topic("skywalking-logs")
    line = f'sender_kafka_records_total{{topic="{topic}",status="OK"}} 300'
    assert line in rig.registry.render().splitlines()


def test_a_broker_that_is_killed_and_started_again_gets_each_record_once(broker: Broker) -> None:
    rig = Rig(broker, timeout="500ms")
    sent = [b"record %d" % number for number in range(40)]

    async def scenario() -> None:
        await rig.insist(Batch(0, Kind.LOG, tuple(sent[:20])))
        broker.kill()
        late = asyncio.create_task(rig.insist(Batch(20, Kind.LOG, tuple(sent[20:]))))
        await asyncio.to_thread(broker.start)
        await late

    rig.play(scenario)
    assert sorted(value or b"" for _, value in rig.held("skywalking-logs")) == sorted(sent)


def test_a_broker_that_wants_certificates_is_shown_ours_and_must_show_a_believed_one(
    broker: Broker, tmp_path: Path
) -> None:
    made = broker.authority.issue_cert("satellite.example")
    ca, strangers = tmp_path / "ca.pem", tmp_path / "strangers.pem"
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    ca.write_bytes(broker.authority.cert_pem.bytes())
    strangers.write_bytes(trustme.CA().cert_pem.bytes())
    made.cert_chain_pems[0].write_to_path(certificate)
    made.private_key_pem.write_to_path(key)
    ours = {"client_pem_path": certificate, "client_key_path": key, "enable_tls": True}
    rig = Rig(broker, brokers=broker.tls_address, ca_pem_path=ca, **ours)
    deceived = Rig(broker, brokers=broker.tls_address, ca_pem_path=strangers, **ours)

    async def scenario() -> None:
        await rig.insist(Batch(0, Kind.LOG, (b"a",)))

    async def in_vain() -> None:
        assert "certificate" in await deceived.denial()

    rig.play(scenario)
    deceived.play(in_vain)
    assert len(rig.held("skywalking-logs")) == 1


def test_a_broker_that_wants_a_password_is_told_it(broker: Broker) -> None:
    right = {"mechanism": "PLAIN", "username": "satellite", "password": "secret"}
    rig = Rig(broker, brokers=broker.sasl_address, sasl=SaslConfig(**right))
    wrong = Rig(
        broker, brokers=broker.sasl_address, sasl=SaslConfig(**{**right, "password": "guess"})
    )

    async def scenario() -> None:
        await rig.insist(Batch(0, Kind.LOG, (b"a",)))

    async def in_vain() -> None:
        assert "authentication" in (await wrong.denial()).lower()

    rig.play(scenario)
    wrong.play(in_vain)
    assert len(rig.held("skywalking-logs")) == 1


def test_nobody_to_connect_to_is_said_with_the_reason() -> None:
    config = KafkaClientConfig(brokers="127.0.0.1:1", timeout="1s")

    async def scenario() -> None:
        forwarder = KafkaForwarder(config, lambda: "queue", 10, Registry())
        await forwarder.start()
        with pytest.raises(RetryableError, match=r"127\.0\.0\.1:1.*(refused|down)"):
            await forwarder.send(Batch(0, Kind.LOG, (b"a",)))
        await forwarder.stop(5.0)

    asyncio.run(asyncio.wait_for(scenario(), WAIT_S))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"brokers": "kafka"}, "no address"),
        ({"compression_codec": "5"}, "compression_codec"),
        ({"timeout": "0s"}, "timeout"),
        ({"max_message_bytes": "1"}, "max_message_bytes"),
        ({"properties": {"acks": "1"}}, "'acks' is not for changing"),
        ({"client_key_path": "key"}, "go together"),
        ({"sasl": {"mechanism": "OTHER"}}, "mechanism"),
    ],
)
def test_a_wrong_value_is_refused_by_name(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        bind(KafkaClientConfig, values, "satellite.yaml: client")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (KafkaClientConfig(properties={"no.such.thing": "1"}), r"no\.such\.thing"),
        (KafkaClientConfig(properties={"linger.ms": "soon"}), r"max\.ms"),
    ],
)
def test_what_the_library_does_not_like_is_said_at_the_start(
    config: KafkaClientConfig, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        asyncio.run(KafkaForwarder(config, str, 1, Registry()).start())


def test_without_the_library_the_start_names_what_to_install() -> None:
    script = (
        "import sys, asyncio; sys.modules['confluent_kafka'] = None\n"
        "from skyfarer.satellite.senders.kafka import KafkaForwarder, KafkaClientConfig\n"
        "from skyfarer.telemetry.metrics import Registry\n"
        "from skyfarer.base.errors import ConfigError\n"
        "try: asyncio.run(KafkaForwarder(KafkaClientConfig(), str, 1, Registry()).start())\n"
        "except ConfigError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=WAIT_S)
    assert "skyfarer[kafka]" in found.stdout


def test_every_kind_has_a_topic() -> None:
    names = {topic_of(kind).name for kind in Kind}
    assert len(names) == len(Kind) - 2
    with pytest.raises(PermanentError):
        topic_of(9999)

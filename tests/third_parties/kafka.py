"""A real Kafka broker, one node without ZooKeeper, from the jars that Maven fetches once.

Its jars lie in `.cache` of the checkout. Ready about four seconds after `start`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import trustme
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography.hazmat.primitives import serialization

from skyfarer.oap.pipeline.java import java_home
from skyfarer.testing.programs import eventually, free_port

POM = Path(__file__).with_name("kafka-pom.xml")
CACHE = Path(__file__).parents[2] / ".cache"
JARS = CACHE / f"kafka-{crc32(POM.read_bytes()):08x}"
FETCH_TIMEOUT_S = 300.0
READY_TIMEOUT_S = 180.0
READ_TIMEOUT_S = 90.0
PAUSE_TIMEOUT_S = 60.0
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls},SASL_PLAINTEXT://127.0.0.1:{sasl},\
CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls},\
SASL_PLAINTEXT://127.0.0.1:{sasl}
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
ssl.client.auth=required
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_satellite="secret";
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\
SASL_PLAINTEXT:SASL_PLAINTEXT
log.dirs={data}
num.partitions=3
offsets.topic.replication.factor=1
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=1000
"""
# Kept from writing to the terminal, and from colours.
MAVEN = {**os.environ, "MAVEN_OPTS": "-Djansi.mode=strip", "TERM": "dumb"}


def missing() -> str:
    """Why there can be no broker on this machine; empty when there can."""
    there = JARS.exists() or shutil.which("mvn")
    return "" if there else "Kafka is fetched by Maven (mvn), which is not installed"


def fetch() -> Path:
    """The directory of the jars. Another process that fetches at the same time does no harm."""
    if JARS.exists():
        return JARS
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        jars = Path(scratch) / "jars"
        command = ["mvn", "-B", "-q", "-C", "-f", str(POM), "dependency:copy-dependencies"]
        options = [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        env = {**MAVEN, "JAVA_HOME": str(java_home(os.environ, Path(scratch)))}
        subprocess.run([*command, *options], env=env, check=True, timeout=FETCH_TIMEOUT_S)
        with suppress(OSError):
            jars.replace(JARS)
    return JARS


class Broker:
    """`pause` leaves its port open and its mouth shut; `kill` and `start` again keep its data.

    It listens three times: for anyone at `address`, at `tls_address` for those with a certificate
    of `authority`, at `sasl_address` for the user "satellite" whose password is "secret".
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._data = directory / "kafka-data"
        self._port, self._tls, self._sasl, controller = (free_port() for _ in range(4))
        self.authority = trustme.CA()
        self._data.mkdir(parents=True)
        (self._data / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id=1\n"
        )
        self._properties = directory / "kafka.properties"
        self._properties.write_text(
            PROPERTIES.format(
                port=self._port,
                tls=self._tls,
                sasl=self._sasl,
                controller=controller,
                data=self._data,
                keystore=self._keystore(),
                truststore=self._truststore(),
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def tls_address(self) -> str:
        return f"127.0.0.1:{self._tls}"

    @property
    def sasl_address(self) -> str:
        return f"127.0.0.1:{self._sasl}"

    def start(self) -> None:
        java = java_home(os.environ, self._directory) / "bin" / "java"
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", QUIET]
        log = (self._directory / "kafka.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [java, *options, "-cp", f"{fetch()}/*", "kafka.Kafka", str(self._properties)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        eventually(self._answers, READY_TIMEOUT_S, "the Kafka broker answers")

    def pause(self) -> None:
        """Returns when each of its threads has stopped: until then one may still answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        threads = Path(f"/proc/{self._process.pid}/task")
        eventually(lambda: all(map(_stopped, threads.iterdir())), PAUSE_TIMEOUT_S, "it has stopped")

    def resume(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def create(self, *topics: str, partitions: int = 3, **config: str) -> None:
        named = {name.replace("_", "."): value for name, value in config.items()}
        admin = self._admin()
        made = admin.create_topics([NewTopic(one, partitions, 1, config=named) for one in topics])
        for outcome in made.values():
            outcome.result(READ_TIMEOUT_S)

    def topics(self) -> dict[str, int]:
        """Name → number of partitions."""
        found = self._admin().list_topics(timeout=READ_TIMEOUT_S).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def read(self, topic: str) -> list[Message]:
        """All that the topic holds, partition by partition, each in its order."""
        options = {"group.id": "reader", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
        consumer = Consumer({**self._client(), **options})
        try:
            partitions = [TopicPartition(topic, n, 0) for n in range(self.topics().get(topic, 0))]
            return _whole(consumer, partitions)
        finally:
            consumer.close()

    def _keystore(self) -> Path:
        """Key and certificate in one file, the key in the one shape that Kafka reads."""
        path, made = self._directory / "broker.pem", self.authority.issue_cert("127.0.0.1")
        key = serialization.load_pem_private_key(made.private_key_pem.bytes(), None)
        shape = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
        readable = key.private_bytes(*shape, serialization.NoEncryption())
        path.write_bytes(readable + b"".join(blob.bytes() for blob in made.cert_chain_pems))
        return path

    def _truststore(self) -> Path:
        path = self._directory / "authority.pem"
        path.write_bytes(self.authority.cert_pem.bytes())
        return path

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "kafka.log").read_text()[-2000:]
        try:
            return bool(self._admin().list_topics(timeout=1.0).brokers)
        except KafkaException:
            return False

    def _admin(self) -> AdminClient:
        return AdminClient(self._client())

    def _client(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.address, "log_level": 0}


def _whole(consumer: Consumer, partitions: list[TopicPartition]) -> list[Message]:
    ends = sum(_end(consumer, partition) for partition in partitions)
    consumer.assign(partitions)
    found: list[Message] = []
    while len(found) < ends:
        message = consumer.poll(READ_TIMEOUT_S)
        assert message is not None, f"{len(found)} of {ends} records came"
        assert message.error() is None, message.error()
        found.append(message)
    return sorted(found, key=lambda one: (one.partition() or 0, one.offset() or 0))


def _end(consumer: Consumer, partition: TopicPartition) -> int:
    """Where it ends; a broker that was paused must find back into its office first."""
    ends: list[int] = []

    def known() -> bool:
        with suppress(KafkaException):
            ends.append(consumer.get_watermark_offsets(partition, timeout=READ_TIMEOUT_S)[1])
        return bool(ends)

    eventually(known, READ_TIMEOUT_S, f"{partition} has an end")
    return ends[0]


def _stopped(thread: Path) -> bool:
    """The state stands behind the name, which may hold anything but a closing bracket last."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T"

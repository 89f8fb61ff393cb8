"""The Kafka client: every record to the topic of its kind, acknowledged by all replicas in sync.

`send` returns when the broker has acknowledged each record of the batch. When some fail, only those
are produced again. While acknowledgements are out, the records stay with librdkafka, which goes on
trying and, being idempotent, writes none twice; the sender hears that they are late, comes back
with the same batch and waits for the same acknowledgements.

librdkafka has threads of its own; one more waits for its reports. Nothing polls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar, Final

from skyfarer.base.errors import ConfigError, RetryableError
from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.notation import address, seconds
from skyfarer.satellite.senders.kafka_config import LOOPBACK, KafkaClientConfig, settings
from skyfarer.satellite.senders.numbering import (
    FIRST_SEQUENCE_KEY,
    PRODUCER_KEY,
    SEQUENCES_KEY,
    relative,
)
from skyfarer.satellite.senders.reports import Reports, failure_of
from skyfarer.satellite.senders.taken import Taken
from skyfarer.satellite.senders.topics import Value, topic_of, values
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

log = logging.getLogger(__name__)

MISSING: Final = "kafka-client needs confluent-kafka: pip install 'skyfarer[kafka]'"

Headers = list[tuple[str, str | bytes | None]]


class KafkaForwarder:
    """A `Forwarder`. `start` makes the producer, which connects by itself, now or later."""

    config_type: ClassVar = KafkaClientConfig
    relay: ClassVar[None] = None  # nobody answers questions by Kafka

    def __init__(
        self,
        config: KafkaClientConfig,
        producer: Callable[[], str],
        records_max: int,
        registry: Registry,
    ) -> None:
        self.addresses = tuple(address(one, LOOPBACK) for one in config.brokers.split(","))
        self.address = self.addresses[0]
        self._config = config
        self._prefix = f"{config.namespace}-" if config.namespace else ""
        self._queue = producer
        self._records_max = records_max
        self._registry = registry
        self._timeout_s = seconds(config.timeout)
        self._taken = Taken()
        self._producer: Producer | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._reports: Reports | None = None
        self._complaint: KafkaError | None = None
        self._foreign: set[str] = set()

    async def start(self) -> None:
        """ConfigError when the library is not installed or does not like what is configured."""
        self._producer = self._made()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kafka")

    async def stop(self, timeout_s: float) -> None:
        """What is not acknowledged by now goes out again after the next start."""
        thread, self._thread = self._thread, None
        self._reports = None
        if self._producer is None or thread is None:
            return
        self._producer.purge()
        last, self._producer = [self._producer], None
        ended = asyncio.get_running_loop().run_in_executor(thread, last.clear)
        thread.shutdown(wait=False)
        await asyncio.wait({ended}, timeout=timeout_s)

    def batch_max(self, kind: int) -> int:
        return self._records_max

    async def send(self, batch: Batch) -> None:
        producer, thread = self._producer, self._thread
        if producer is None or thread is None:
            raise RetryableError("the Kafka client is not running")
        reports = self._reports
        if reports is None or not reports.is_of(batch):
            reports = self._reports = self._produced(producer, batch)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(thread, producer.flush, self._timeout_s)
        if reports.awaited:
            raise self._late(reports.awaited)
        self._reports = None
        self._count(reports, self._prefix + topic_of(batch.kind).name)
        if not reports.failures:
            self._complaint = None
            self._taken.forget(batch)
            return
        for value in reports.done:
            self._taken.add(batch, value.indexes)
        if reports.fatal():
            log.error("Kafka: the producer is made anew: %s", reports.failures[0])
            self._producer = self._made()
        raise failure_of(reports.failures, self._config.brokers)

    def _produced(self, producer: Producer, batch: Batch) -> Reports:
        """Hands over what Kafka does not have yet; what another batch left behind is given up."""
        if self._reports is not None:
            producer.purge()
        topic = topic_of(batch.kind)
        if not topic.read_by_oap and topic.name not in self._foreign:
            self._foreign.add(topic.name)
            log.warning("topic %s is none of those an OAP reads", self._prefix + topic.name)
        reports = Reports(batch)
        queue = self._queue()
        for value in values(batch, self._taken.left(batch)):
            headers = _headers(queue, batch, value)
            self._produce(producer, self._prefix + topic.name, value, headers, reports)
        return reports

    def _produce(
        self, producer: Producer, topic: str, value: Value, headers: Headers, reports: Reports
    ) -> None:
        import confluent_kafka as kafka

        def report(error: KafkaError | None, message: Message | None) -> None:
            reports.add(value, error)

        reports.awaited += 1
        try:
            producer.produce(topic, value.value, value.key, headers=headers, on_delivery=report)
        except kafka.KafkaException as refused:
            report(refused.args[0], None)
        except BufferError:
            report(kafka.KafkaError(kafka.KafkaError._QUEUE_FULL), None)

    def _count(self, reports: Reports, topic: str) -> None:
        registry, sent_bytes = self._registry, sum(len(value.value) for value in reports.done)
        registry.inc(table.SENDER_BYTES, sent_bytes)
        registry.inc(table.SENDER_KAFKA_RECORDS, len(reports.done), topic=topic, status="OK")
        for error in reports.failures:
            registry.inc(table.SENDER_KAFKA_RECORDS, topic=topic, status=error.name())

    def _late(self, awaited: int) -> RetryableError:
        complaint, self._complaint = self._complaint, None
        if complaint is not None:
            failure = failure_of([complaint], self._config.brokers)
            if isinstance(failure, RetryableError):
                return failure
        return RetryableError(
            f"Kafka at {self._config.brokers}: {awaited} records are not acknowledged"
            f" after {self._timeout_s:g} s"
        )

    def _made(self) -> Producer:
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError as missing:
            raise ConfigError(MISSING) from missing
        try:
            return Producer({**settings(self._config), "error_cb": self._on_error})
        except KafkaException as refused:
            raise ConfigError(f"kafka-client: {refused.args[0].str()}") from refused

    def _on_error(self, error: KafkaError) -> None:
        """Of the connection, not of a record; called by the thread that waits. The first is kept: a
        refused password is followed by the word that nobody is there."""
        self._complaint = self._complaint or error


def _headers(queue: str, batch: Batch, value: Value) -> Headers:
    """As a gRPC call's metadata, for this one record; `numbering` says what they mean."""
    if batch.emitted:
        return []
    return [
        (PRODUCER_KEY, queue.encode()),
        (FIRST_SEQUENCE_KEY, str(batch.first).encode()),
        (SEQUENCES_KEY, relative(batch, [value.indexes]).encode()),
    ]

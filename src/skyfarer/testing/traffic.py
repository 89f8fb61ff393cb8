"""A small shop under load: gateway → order → stock, with PostgreSQL, Redis and Kafka behind them.

    gateway ──GET:/orders/{id}──▶ order ──▶ Redis, on a miss PostgreSQL
            ──POST:/checkout────▶ order ──POST:/reserve──▶ stock ──▶ PostgreSQL
                                    └────Kafka order-created────▶ stock (consumer)
            ──GET:/stock────────▶ stock ──▶ Redis

Each trace is several segments with true references. `Expected` adds up every entry span that was
handed out, so that a verifier can ask the query API for the same numbers and want them equal.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from skyfarer.base.clock import Clock
from skyfarer.testing import traces
from skyfarer.testing.expected import Expected
from skyfarer.testing.traces import Exit
from skyfarer.wire.messages import (
    InstancePingPkg,
    InstanceProperties,
    KeyStringValuePair,
    SegmentObject,
)

DATABASE = "postgresql.shop:5432"
CACHE = "redis.shop:6379"
BROKERS = "kafka.shop:9092"
TOPIC = "order-created"

INSTANCES = {
    "gateway": ("gateway-1@10.0.1.1", "gateway-2@10.0.1.2"),
    "order": ("order-1@10.0.2.1", "order-2@10.0.2.2", "order-3@10.0.2.3"),
    "stock": ("stock-1@10.0.3.1", "stock-2@10.0.3.2"),
}
ADDRESSES = {"order": "order.shop:8080", "stock": "stock.shop:8080"}


class DemoTraffic:
    """An endless, seeded stream of traces; not thread-safe."""

    def __init__(self, random: Random, clock: Clock) -> None:
        self._random = random
        self._clock = clock
        self._number = 0
        self._scenes: tuple[tuple[int, Callable[[int], list[SegmentObject]]], ...] = (
            (5, self._read_order),
            (3, self._checkout),
            (2, self._read_stock),
        )
        self.expected = Expected()

    def trace(self, now_ms: int | None = None) -> list[SegmentObject]:
        """The segments of one request that begins at `now_ms`, by default at the clock's time."""
        start = self._clock.now_ms() if now_ms is None else now_ms
        weights = [weight for weight, _ in self._scenes]
        _, scene = self._random.choices(self._scenes, weights)[0]
        segments = scene(start)
        for segment in segments:
            self.expected.observe(segment)
        return segments

    def properties(self) -> list[InstanceProperties]:
        """What every instance reports of itself at start."""
        return [
            InstanceProperties(
                service=service,
                serviceInstance=instance,
                layer="GENERAL",
                properties=[
                    KeyStringValuePair(key="language", value="python"),
                    KeyStringValuePair(key="hostname", value=instance.partition("@")[0]),
                    KeyStringValuePair(key="ipv4", value=instance.partition("@")[2]),
                    KeyStringValuePair(key="Process No.", value=str(number)),
                ],
            )
            for service, instances in INSTANCES.items()
            for number, instance in enumerate(instances, start=1)
        ]

    def pings(self) -> list[InstancePingPkg]:
        return [
            InstancePingPkg(service=service, serviceInstance=instance, layer="GENERAL")
            for service, instances in INSTANCES.items()
            for instance in instances
        ]

    def _read_order(self, start: int) -> list[SegmentObject]:
        error = self._chance(0.02)
        hit = self._chance(0.7)
        statement = "SELECT id, state, total FROM orders WHERE id = ?"
        exits = [traces.cache(CACHE, "GET", "order:42", 1, self._latency(1, 4))]
        if not hit:
            exits.append(traces.database(DATABASE, statement, 6, self._database_latency()))
        inner = _after(exits) + self._latency(1, 8)
        gateway = self._front("GET:/orders/{id}", start, inner + 4, error, "order")
        order = self._called(gateway, "order", "GET:/orders/{id}", start + 2, inner, error, exits)
        return [order, gateway]

    def _checkout(self, start: int) -> list[SegmentObject]:
        error = self._chance(0.08)
        reserve = self._database_latency()
        exits = [
            self._call("stock", "POST:/reserve", 2, reserve + 4, error),
            traces.database(
                DATABASE, "INSERT INTO orders (customer, total) VALUES (?, ?)", reserve + 8, 9
            ),
        ]
        if not error:
            exits.append(traces.produce(BROKERS, TOPIC, reserve + 18, self._latency(1, 5)))
        inner = _after(exits) + self._latency(2, 12)
        gateway = self._front("POST:/checkout", start, inner + 5, error, "order")
        order = self._called(gateway, "order", "POST:/orders", start + 2, inner, error, exits)
        update = "UPDATE stock SET free = free - ? WHERE article = ?"
        stock = self._called(
            order,
            "stock",
            "POST:/reserve",
            start + 5,
            reserve + 2,
            error,
            [traces.database(DATABASE, update, 1, reserve)],
        )
        segments = [stock, order, gateway]
        if not error:
            segments.append(self._consumed(order, start + reserve + 30))
        return segments

    def _read_stock(self, start: int) -> list[SegmentObject]:
        error = self._chance(0.01)
        exits = [traces.cache(CACHE, "HGET", "stock:article", 0, self._latency(1, 3))]
        inner = _after(exits) + self._latency(1, 5)
        gateway = self._front("GET:/stock", start, inner + 3, error, "stock")
        stock = self._called(gateway, "stock", "GET:/stock", start + 1, inner, error, exits)
        return [stock, gateway]

    def _front(
        self, endpoint: str, start: int, latency: int, error: bool, target: str
    ) -> SegmentObject:
        """The gateway's segment, which begins the trace and calls `target`."""
        return traces.segment(
            "gateway",
            self._instance("gateway"),
            endpoint,
            start,
            latency,
            error,
            trace_id=self._id(start),
            segment_id=self._id(start),
            exits=[self._call(target, endpoint, 1, latency - 2, error)],
        )

    def _called(
        self,
        parent: SegmentObject,
        service: str,
        endpoint: str,
        start: int,
        latency: int,
        error: bool,
        exits: list[Exit],
    ) -> SegmentObject:
        """The segment of the service that the parent's first exit span called."""
        return traces.segment(
            service,
            self._instance(service),
            endpoint,
            start,
            latency,
            error,
            trace_id=parent.traceId,
            segment_id=self._id(start),
            callers=[traces.caller(parent, 1)],
            exits=exits,
        )

    def _consumed(self, producer: SegmentObject, start: int) -> SegmentObject:
        span = next(span for span in producer.spans if span.operationName.startswith("Kafka/"))
        waited = start - span.endTime
        return traces.segment(
            "stock",
            self._instance("stock"),
            f"Kafka/{TOPIC}/Consumer",
            start,
            self._latency(3, 20),
            trace_id=producer.traceId,
            segment_id=self._id(start),
            callers=[traces.caller(producer, span.spanId)],
            layer="MQ",
            component=traces.KAFKA_CONSUMER,
            tags={"mq.broker": BROKERS, "mq.topic": TOPIC, "transmission.latency": str(waited)},
        )

    def _call(self, service: str, path: str, offset: int, latency: int, error: bool) -> Exit:
        return Exit(path, ADDRESSES[service], offset, latency, error=error)

    def _database_latency(self) -> int:
        """Most statements are quick; a few are slow enough to be listed as such."""
        return self._latency(300, 1200) if self._chance(0.03) else self._latency(2, 30)

    def _latency(self, low_ms: int, high_ms: int) -> int:
        return self._random.randint(low_ms, high_ms)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _instance(self, service: str) -> str:
        return self._random.choice(INSTANCES[service])

    def _id(self, start: int) -> str:
        self._number += 1
        return f"{self._random.getrandbits(128):032x}.1.{start}{self._number % 10_000:04d}"


def _after(exits: list[Exit]) -> int:
    """The offset at which the last of the calls has ended."""
    return max(exit.offset_ms + exit.latency_ms for exit in exits)

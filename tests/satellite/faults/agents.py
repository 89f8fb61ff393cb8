"""Agents made of grpcio, each on a thread: they send numbered records and remember their fate."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import grpc

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
CALL_TIMEOUT_S = 120.0
PAUSE_S = 0.05
# An agent that comes back at once: the satellite is away for moments only. It has as much time to
# connect as any, which `grpc.min_reconnect_backoff_ms` would take from it on a busy machine.
RECONNECT = [
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 100),
]


class Agent(threading.Thread):
    """Streams calls of `a_call` records until `stop`, `rate` records a second, 0 as fast as it can.

    What a failed call carried is not sent again: it is in `sent`, and may have been kept or not.
    """

    def __init__(
        self, address: str, name: str, rate: float = 0.0, a_call: int = 20, record_bytes: int = 100
    ) -> None:
        super().__init__(name=f"agent {name}", daemon=True)
        self.acknowledged: set[bytes] = set()
        self.sent: set[bytes] = set()
        self.failures: Counter[grpc.StatusCode] = Counter()
        self.slowest_s = 0.0
        self._address = address
        self.prefix = name
        self._interval_s = a_call / rate if rate else 0.0
        self._a_call = a_call
        self._record_bytes = record_bytes
        self._number = 0
        self._ended = threading.Event()

    def run(self) -> None:
        begun_s, calls = time.monotonic(), 0
        with grpc.insecure_channel(self._address, RECONNECT) as channel:
            collect = channel.stream_unary(COLLECT)
            while not self._ended.wait(begun_s + calls * self._interval_s - time.monotonic()):
                self._call(collect)
                calls += 1

    def stop(self) -> None:
        self._ended.set()
        self.join(2 * CALL_TIMEOUT_S)
        assert not self.is_alive(), f"{self.name} hangs"

    def _call(self, collect: grpc.StreamUnaryMultiCallable) -> None:
        batch = [self._record() for _ in range(self._a_call)]
        self.sent.update(batch)
        begun_s = time.monotonic()
        try:
            collect(iter(batch), timeout=CALL_TIMEOUT_S)
        except grpc.RpcError as error:
            self.failures[error.code()] += 1
            self._ended.wait(PAUSE_S)
            return
        self.acknowledged.update(batch)
        self.slowest_s = max(self.slowest_s, time.monotonic() - begun_s)

    def make(self, number: int) -> bytes:
        """The record of that number; unlike any other, of any agent."""
        return f"{self.prefix}.{number}.".encode().ljust(self._record_bytes, b"x")

    def _record(self) -> bytes:
        self._number += 1
        return self.make(self._number)


@contextmanager
def reporting(*agents: Agent) -> Iterator[None]:
    """They run inside of the block."""
    for agent in agents:
        agent.start()
    try:
        yield
    finally:
        for agent in agents:
            agent.stop()


def acknowledged(agents: Iterable[Agent]) -> set[bytes]:
    return set().union(*(agent.acknowledged for agent in agents))


def sent(agents: Iterable[Agent]) -> set[bytes]:
    return set().union(*(agent.sent for agent in agents))

"""From acknowledgement to sight: how long until GraphQL shows a trace that the OAP has taken.

A whole OAP as anyone starts it, receiver, Spark, storage and query, on the cores of this machine,
beside the client that loads it: traces of the demo's kind at a steady rate, of their own time. The
last trace of each call is asked for from the moment of its acknowledgement on until it is there.
A JVM is slow until it has compiled itself, which takes the cores that the batches want: the goal is
for the time after WARM_UP_S, and the minute before that is told beside it.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from random import Random

import psutil

from figures import figure
from skyfarer.base.clock import SystemClock
from skyfarer.testing.programs import Oap
from skyfarer.testing.traffic import DemoTraffic
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Kind

RATE = 2_000
A_CALL = 100
START_S = 30
WARM_UP_S = 90
SECONDS = 90
LOOK_EVERY_S = 0.1
"""Each look is a query of the OAP's, and takes from the same cores."""
P99_S_MAX = 3.0
GIVE_UP_S = 60.0

Call = tuple[str, list[bytes]]
"""The id of its last trace, and the segments."""


class Watch(threading.Thread):
    """Traces come into sight in the order in which they were taken, so one is looked for."""

    def __init__(self, oap: Oap) -> None:
        super().__init__(daemon=True)
        self.taken: deque[tuple[str, float]] = deque()
        self.spent_s: list[tuple[float, float]] = []
        """When it was taken, and how long it was until it was seen."""
        self.over = threading.Event()
        self._oap = oap

    def run(self) -> None:
        while self.taken or not self.over.is_set():
            if self.taken and self._oap.trace(self.taken[0][0]):
                _, taken_s = self.taken.popleft()
                self.spent_s.append((taken_s, time.monotonic() - taken_s))
            else:
                time.sleep(LOOK_EVERY_S)


def calls(seconds: int, begin_ms: int) -> list[Call]:
    """Whole traces, each of the moment at which its call is due."""
    traffic, made = DemoTraffic(Random(1), SystemClock()), []
    for number in range(seconds * RATE // A_CALL):
        segments: list[bytes] = []
        while len(segments) < A_CALL:
            trace = traffic.trace(begin_ms + number * A_CALL * 1000 // RATE)
            segments += [one.SerializeToString() for one in trace]
        made.append((trace[0].traceId, segments))
    return made


async def send(port: int, due: list[Call], watch: Watch) -> int:
    client, sent = GrpcClient(ClientSettings("127.0.0.1", port)), 0
    await client.start()
    begun_s = time.monotonic()
    for number, (trace_id, segments) in enumerate(due):
        await asyncio.sleep(max(0.0, begun_s + number * A_CALL / RATE - time.monotonic()))
        await client.send(FORWARD[Kind.SEGMENT], segments)
        sent += len(segments)
        if number >= START_S * RATE // A_CALL:
            watch.taken.append((trace_id, time.monotonic()))
    await client.stop(1.0)
    return sent


def cpu_s(oap: Oap) -> float:
    """Of the OAP's processes that are there now."""
    group = psutil.Process(oap.pid)
    times = [one.cpu_times() for one in (group, *group.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        oap = Oap(Path(scratch))
        oap.start()
        try:
            watch = Watch(oap)
            watch.start()
            seconds = WARM_UP_S + SECONDS
            due = calls(seconds, int(time.time() * 1000))
            begun_s, begun_cpu_s = time.monotonic(), cpu_s(oap)
            sent = asyncio.run(send(oap.grpc_port, due, watch))
            took_s, cores = time.monotonic() - begun_s, cpu_s(oap) - begun_cpu_s
            watch.over.set()
            watch.join(GIVE_UP_S)
            assert not watch.is_alive(), f"{len(watch.taken)} calls are not in sight"
            books = oap.await_applied(sent)
        finally:
            oap.kill()
    assert books["delivered"] == sent, books
    warm_s = begun_s + WARM_UP_S
    early_s = sorted(spent_s for taken_s, spent_s in watch.spent_s if taken_s < warm_s)
    spent_s = sorted(spent_s for taken_s, spent_s in watch.spent_s if taken_s >= warm_s)
    figure("freshness_rate", sent / took_s, "segments/s, all of them stored", at_least=0.95 * RATE)
    figure("freshness_oap_cpu", cores / took_s, "cores, receiver, JVM and workers")
    figure("freshness_early_p50", _at(early_s, 50), f"s, of the minute before {WARM_UP_S} s")
    figure("freshness_early_p99", _at(early_s, 99), f"s, of the minute before {WARM_UP_S} s")
    figure("freshness_p50", _at(spent_s, 50), "s from acknowledgement to GraphQL")
    p99_s = _at(spent_s, 99)
    figure("freshness_p99", p99_s, "s from acknowledgement to GraphQL", at_most=P99_S_MAX)


def _at(ascending: list[float], percent: int) -> float:
    return ascending[len(ascending) * percent // 100]


if __name__ == "__main__":
    main()

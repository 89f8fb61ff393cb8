"""A real satellite and a real receiver that dies again and again: each record is kept once.

The records are bytes without an id, so that nobody behind the queue could tell two of them apart.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import grpc
import psutil

from skyfarer.base.units import MIB
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.queue.reader import Reader
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.line import Line
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

KILLS = 20
WAIT_S = 120.0
COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
IMPATIENT = {
    "SATELLITE_TRACINGPIPE_SENDER_FLUSH_TIME": "5",
    "SKYFARER_SATELLITE_SENDER_RETRY_INITIAL": "10ms",
    "SKYFARER_SATELLITE_SENDER_RETRY_MAXIMUM": "100ms",
}


class Load(threading.Thread):
    """Streams of records, and single ones by calls of their own, until it is told to end."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[bytes] = []
        self.failures = 0
        self.ended = threading.Event()
        self._address = address
        self._number = 0

    def run(self) -> None:
        with grpc.insecure_channel(self._address) as channel:
            collect = channel.stream_unary(COLLECT)
            keep_alive = channel.unary_unary(KEEP_ALIVE)
            while not self.ended.wait(0.005):
                batch, ping = [self._record() for _ in range(20)], self._record()
                try:
                    collect(iter(batch), timeout=WAIT_S)
                    keep_alive(ping, timeout=WAIT_S)
                except grpc.RpcError:
                    self.failures += 1
                    return
                self.acknowledged += [*batch, ping]

    def _record(self) -> bytes:
        self._number += 1
        return b"\xff record %d " % self._number + bytes(100)


@contextmanager
def receiving(directory: Path, registry: Registry) -> Iterator[Supervisor]:
    settings = ReceiverSettings(
        directory=str(directory / "ingest"),
        consumers=("analysis",),
        segment_bytes=MIB,
        capacity_bytes=128 * MIB,
        record_bytes_max=MIB // 4,
        streams_max=0,
        log_level="ERROR",
    )
    listener = socket.create_server(("127.0.0.1", 0))
    supervisor = Supervisor(settings, listener, registry, Health())
    supervisor.start()
    try:
        yield supervisor
    finally:
        supervisor.stop()


def kill() -> None:
    """Whichever receiver there is."""
    children = psutil.Process(os.getpid()).children()
    (victim,) = [one for one in children if "skyfarer.oap.receivers.process" in one.cmdline()]
    victim.kill()
    eventually(lambda: not victim.is_running(), WAIT_S, "it is dead")


def ingested(directory: Path) -> Counter[bytes]:
    reader = Reader(directory / "ingest")
    reader.start()
    found: Counter[bytes] = Counter()
    for run in reader.runs(0, reader.writing()):
        assert not run.damaged
        found.update(map(bytes, run.payloads()))
    reader.stop()
    return found


def written(directory: Path) -> int:
    reader = Reader(directory / "ingest")
    reader.start()
    try:
        return reader.writing()
    finally:
        reader.stop()


def test_a_satellites_records_are_kept_once_though_the_receiver_is_killed_and_answers_are_lost(
    tmp_path: Path,
) -> None:
    random, registry = Random(5), Registry()
    with ExitStack() as stack:
        supervisor = stack.enter_context(receiving(tmp_path, registry))
        line = stack.enter_context(Line(supervisor.port))
        satellite = stack.enter_context(SatelliteProgram(tmp_path, line.address, **IMPATIENT))
        load = Load(satellite.address)
        load.start()
        for _ in range(KILLS):
            wanted = written(tmp_path) + random.randrange(1, 200)
            eventually(lambda: written(tmp_path) >= wanted, WAIT_S, "it keeps records")  # noqa: B023
            # Of the next connections some lose an answer on its way.
            line.cuts.extend(-random.randrange(40, 600) for _ in range(3))
            kill()
        eventually(
            lambda: "receiver_repeats_total" in registry.render(),
            WAIT_S,
            "what was sent again is counted",
        )
        load.ended.set()
        load.join(WAIT_S)
        assert not load.failures
        ledger = satellite.await_empty()
        found = ingested(tmp_path)
        twice = {one[:20]: times for one, times in found.items() if times > 1}
        assert not twice
        assert set(found) == set(load.acknowledged)
        assert ledger.delivered == len(found) == len(load.acknowledged)
        assert line.resets, "no answer was lost"

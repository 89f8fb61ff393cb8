"""The sink stands still and the queue fills: agents are refused, and what was taken is stored."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import grpc
from pyspark.sql import SparkSession

from oap.pipeline.bench import NOON
from oap.pipeline.faults.line import BEGIN, Line
from oap.receivers.receiving import settings
from skyfarer.base.units import KIB, MIB
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import KeyStringValuePair

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
CAPACITY = 4 * MIB
BYTES = 64 * KIB
CALLS_MAX = 2 * CAPACITY // BYTES
WAIT_S = 120.0


@contextmanager
def receiving(directory: Path) -> Iterator[str]:
    """The address of a receiver with a small queue there."""
    small = replace(
        settings(directory, CAPACITY),
        directory=str(directory / "queue"),
        segment_bytes=MIB,
        record_bytes_max=MIB // 4,
    )
    listener = socket.create_server(("127.0.0.1", 0))
    supervisor = Supervisor(small, listener, Registry(), Health())
    supervisor.start()
    try:
        yield f"127.0.0.1:{supervisor.port}"
    finally:
        supervisor.stop()


class Agent:
    """Sends large segments, one a call; those that were taken are `acknowledged`."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._collect = channel.stream_unary(COLLECT)
        self._number = 0
        self.acknowledged: list[str] = []

    def send(self) -> grpc.StatusCode:
        self._number += 1
        name = f"{self._number:06d}"
        made = segment("shop", "shop-1", "/pay", NOON, 10, segment_id=name)
        made.spans[0].tags.append(KeyStringValuePair(key="much", value="x" * BYTES))
        try:
            self._collect(iter([made.SerializeToString()]), timeout=WAIT_S)
        except grpc.RpcError as error:
            return error.code()
        self.acknowledged.append(name)
        return grpc.StatusCode.OK


class Dam:
    """Holds every batch at the door of storage until it is opened."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, moment: str) -> None:
        if moment == BEGIN:
            self.reached.set()
            assert self.open.wait(WAIT_S)


def test_a_queue_that_fills_behind_a_stalled_sink_refuses_agents_and_stores_all_it_took(
    spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    dam = Dam()
    with receiving(tmp_path) as address, grpc.insecure_channel(address) as channel:
        agent = Agent(channel)
        assert agent.send() is grpc.StatusCode.OK
        with Line(tmp_path, spark, metrics, dam) as line:
            sink = threading.Thread(target=line.run)
            sink.start()
            assert dam.reached.wait(WAIT_S)
            answers = [agent.send() for _ in range(CALLS_MAX)]
            assert set(answers) == {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
            assert answers == sorted(answers, key=lambda code: code.value[0]), "one slipped through"
            assert line.reader.writing() == len(agent.acknowledged)
            assert line.storage.progress(line.reader.queue_id) == Applied(0, 0, {})
            dam.open.set()
            sink.join(WAIT_S)
            line.run()
            eventually(lambda: agent.send() is grpc.StatusCode.OK, WAIT_S, "there is room again")
            line.run()
            taken = len(agent.acknowledged)
            assert line.storage.progress(line.reader.queue_id) == Applied(taken, taken, {})
            query = "SELECT segment_id FROM segment_20261115 ORDER BY 1"
            stored = [name for (name,) in line.storage._cursor().execute(query).fetchall()]
            assert stored == agent.acknowledged

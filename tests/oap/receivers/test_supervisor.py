"""The receiver as a real child: it serves, it comes back, it does not outlive its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import MIB
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.queue.reader import Reader
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually, free_port
from skyfarer.wire.rpc import Kind


def settings(directory: Path, port: int) -> ReceiverSettings:
    return ReceiverSettings(
        directory=str(directory / "ingest"),
        consumers=("analysis",),
        segment_bytes=MIB,
        capacity_bytes=4 * MIB,
        record_bytes_max=MIB // 4,
        host="127.0.0.1",
        port=port,
        streams_max=0,
        log_level="ERROR",
    )


def send(port: int, *payloads: bytes) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=60)
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        collect(iter(payloads), timeout=30)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(settings(tmp_path, free_port()), Registry(), Health())
    supervisor.start()
    yield supervisor
    supervisor.stop()


def received(directory: Path) -> list[tuple[int, bytes]]:
    reader = Reader(directory / "ingest")
    reader.start()
    found = []
    for run in reader.runs(0, reader.writing()):
        found += zip(run.kinds(), map(bytes, run.payloads()), strict=True)
    reader.stop()
    return found


def receiver_of(pid: int) -> psutil.Process:
    children = psutil.Process(pid).children()
    (receiver,) = [one for one in children if "skyfarer.oap.receivers.process" in one.cmdline()]
    return receiver


def test_messages_are_in_the_queue_as_the_bytes_they_came_in(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    send(supervisor.port, b"one", b"\x00\xff", b"")
    assert received(tmp_path) == [(Kind.SEGMENT, p) for p in (b"one", b"\x00\xff", b"")]


def test_a_killed_receiver_is_started_again_with_what_it_had(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    send(supervisor.port, b"before")
    first = receiver_of(os.getpid())
    first.kill()
    eventually(lambda: not first.is_running(), 30, "the first receiver is gone")
    send(supervisor.port, b"after")
    assert [payload for _, payload in received(tmp_path)] == [b"before", b"after"]


def test_metrics_of_the_receiver_reach_its_parent(tmp_path: Path) -> None:
    registry = Registry()
    supervisor = Supervisor(settings(tmp_path, free_port()), registry, Health())
    supervisor.start()
    send(supervisor.port, b"one", b"two")
    eventually(lambda: "queue_accepted_total 2" in registry.render(), 30, "the count arrives")
    supervisor.stop()


def test_a_port_that_is_taken_is_told_in_one_sentence(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    other = Supervisor(settings(tmp_path / "other", supervisor.port), Registry(), Health())
    with pytest.raises(PermanentError, match=f"cannot serve 127.0.0.1:{supervisor.port}"):
        other.start()


def test_a_queue_that_is_in_use_is_told_in_one_sentence(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    other = Supervisor(settings(tmp_path, free_port()), Registry(), Health())
    with pytest.raises(PermanentError, match=str(receiver_of(os.getpid()).pid)):
        other.start()


def test_stop_is_safe_unstarted_and_twice(tmp_path: Path) -> None:
    supervisor = Supervisor(settings(tmp_path, free_port()), Registry(), Health())
    supervisor.stop()
    supervisor = Supervisor(settings(tmp_path, free_port()), Registry(), Health())
    supervisor.start()
    supervisor.stop()
    supervisor.stop()


PARENT = """
import sys, time
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
Supervisor(ReceiverSettings.from_json(sys.argv[1]), Registry(), Health()).start()
print("ready", flush=True)
time.sleep(600)
"""


def test_a_receiver_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    text = settings(tmp_path, free_port()).to_json()
    command = [sys.executable, "-c", PARENT, text]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    receiver = receiver_of(parent.pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    eventually(lambda: not receiver.is_running(), 30, "the orphan has ended")

"""The receiver as a real child: it serves, it comes back, it does not outlive its parent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
from skyfarer.testing.programs import eventually
from skyfarer.wire.rpc import Kind


def settings(directory: Path) -> ReceiverSettings:
    return ReceiverSettings(
        directory=str(directory / "ingest"),
        consumers=("analysis",),
        segment_bytes=MIB,
        capacity_bytes=4 * MIB,
        record_bytes_max=MIB // 4,
        streams_max=0,
        log_level="ERROR",
    )


def supervised(directory: Path, registry: Registry | None = None) -> Supervisor:
    listener = socket.create_server(("127.0.0.1", 0))
    return Supervisor(settings(directory), listener, registry or Registry(), Health())


def send(port: int, *payloads: bytes) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=60)
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        collect(iter(payloads), timeout=30)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = supervised(tmp_path)
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
    eventually(lambda: not first.is_running(), 240, "the first receiver is gone")
    send(supervisor.port, b"after")
    assert [payload for _, payload in received(tmp_path)] == [b"before", b"after"]


def test_metrics_of_the_receiver_reach_its_parent(tmp_path: Path) -> None:
    registry = Registry()
    supervisor = supervised(tmp_path, registry)
    supervisor.start()
    send(supervisor.port, b"one", b"two")
    eventually(lambda: "queue_accepted_total 2" in registry.render(), 240, "the count arrives")
    supervisor.stop()


def test_a_call_that_comes_before_the_queue_is_there_waits_and_is_kept(tmp_path: Path) -> None:
    supervisor = supervised(tmp_path)
    with ThreadPoolExecutor(1) as agent:
        early = agent.submit(send, supervisor.port, b"early")
        eventually(lambda: _waiting(supervisor.port) == 1, 240, "the kernel has the connection")
        assert not (tmp_path / "ingest").exists()
        supervisor.start()
        early.result(timeout=60)
    assert received(tmp_path) == [(Kind.SEGMENT, b"early")]
    supervisor.stop()


def _waiting(port: int) -> int:
    connections = psutil.net_connections("tcp4")
    return sum(one.status == "ESTABLISHED" and one.laddr.port == port for one in connections)


def test_the_port_is_closed_when_it_is_stopped(supervisor: Supervisor) -> None:
    supervisor.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", supervisor.port), timeout=60)


def test_a_queue_that_is_in_use_is_told_in_one_sentence(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    other = supervised(tmp_path)
    with pytest.raises(PermanentError, match=str(receiver_of(os.getpid()).pid)):
        other.start()


def test_a_receiver_that_dies_before_it_serves_is_a_failed_start(tmp_path: Path) -> None:
    hopeless = replace(settings(tmp_path), log_level="NO SUCH LEVEL")
    listener = socket.create_server(("127.0.0.1", 0))
    with pytest.raises(PermanentError, match="ended with code 1 before it served"):
        Supervisor(hopeless, listener, Registry(), Health()).start()


def test_stop_is_safe_unstarted_and_twice(tmp_path: Path) -> None:
    supervisor = supervised(tmp_path)
    supervisor.stop()
    supervisor = supervised(tmp_path)
    supervisor.start()
    supervisor.stop()
    supervisor.stop()


PARENT = """
import socket, sys, time
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
listener = socket.create_server(("127.0.0.1", 0))
Supervisor(ReceiverSettings.from_json(sys.argv[1]), listener, Registry(), Health()).start()
print("ready", flush=True)
time.sleep(600)
"""


def test_a_receiver_decodes_nothing_so_it_loads_no_protobuf() -> None:
    script = "import sys, skyfarer.oap.receivers.process; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "skyfarer.oap.receivers.asking" in done.stdout.split()
    assert "google.protobuf" not in done.stdout.split()


def test_a_receiver_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    text = settings(tmp_path).to_json()
    command = [sys.executable, "-c", PARENT, text]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    receiver = receiver_of(parent.pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    eventually(lambda: not receiver.is_running(), 240, "the orphan has ended")

"""What receiving costs: CPU of the receiver process per message, until it is durable in the queue.

The real receiver of an OAP beside a bare grpcio server that throws the bytes away, under the same
loads: bursts packed into full DATA frames, as an agent's are; a stream of grpcio's own client, each
message in a frame of its own, as fast as it can; the same with a pause after each, so that every
message wakes the server up, for orientation; unary keep-alives. Then ten million messages, for the
memory they leave behind: the most in the second half above the most in the first, since the part of
the queue that is mapped rises and falls by a megabyte with every segment. CPU is the process's own,
so that a busy machine matters less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import psutil

from figures import figure
from skyfarer.base.units import KIB, MIB
from skyfarer.oap.receivers.process import ReceiverSettings
from skyfarer.oap.receivers.supervisor import Supervisor
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.traces import segment
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.messages import InstancePingPkg
from skyfarer.wire.rpc import FORWARD, Kind

BURST = 1000
BURSTS = 50
ROUNDS = 3  # behind one that warms up
SINGLES, SINGLE_PAUSE_S = 10_000, 0.0002
UNARY_CALLS = 2000
GOALS = {"burst": 5.0, "single": 1.5, "paused": None, "unary": 1.0}
MESSAGES = 10_000_000
GROWTH_MB_MAX = 0.5
COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
CONSUMER = "analysis"
COMMIT_S = 0.05

GRPCIO = """
from concurrent import futures
import grpc

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method.endswith("/collect"):
            return grpc.stream_unary_rpc_method_handler(self.drain)
        return grpc.unary_unary_rpc_method_handler(lambda message, context: b"")

    def drain(self, messages, context):
        for message in messages:
            pass
        return b""

server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Handler()])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


@contextmanager
def grpcio() -> Iterator[tuple[psutil.Process, int]]:
    process = subprocess.Popen([sys.executable, "-c", GRPCIO], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield psutil.Process(process.pid), int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


@contextmanager
def receiver(
    directory: Path, refuse_malformed: bool = False
) -> Iterator[tuple[psutil.Process, int, Callable[[], int]]]:
    """The process, its port, and how many records it has taken; they are consumed at once."""
    settings = ReceiverSettings(
        directory=str(directory),
        consumers=(CONSUMER,),
        segment_bytes=16 * MIB,
        capacity_bytes=512 * MIB,
        record_bytes_max=4 * MIB,
        streams_max=0,
        refuse_malformed=refuse_malformed,
    )
    listener = socket.create_server(("127.0.0.1", 0))
    supervisor = Supervisor(settings, listener, Registry(), Health())
    known = {child.pid for child in psutil.Process().children()}
    supervisor.start()
    [process] = [child for child in psutil.Process().children() if child.pid not in known]
    reader, consumer = Reader(directory), Consumer(directory, CONSUMER)
    reader.start()
    consumer.start()
    stopping = threading.Event()

    def consume() -> None:
        while not stopping.wait(COMMIT_S):
            consumer.commit(reader.writing())

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        yield process, supervisor.port, reader.writing
    finally:
        stopping.set()
        thread.join()
        consumer.stop()
        reader.stop()
        supervisor.stop(5.0)


@contextmanager
def connected(port: int) -> Iterator[Callable[[Kind, list[bytes]], None]]:
    """Bursts by our own client, packed into full frames as an agent's are; each call blocks."""
    with asyncio.Runner() as runner:
        client = GrpcClient(ClientSettings("127.0.0.1", port))
        runner.run(client.start())
        yield lambda kind, messages: runner.run(client.send(FORWARD[kind], messages)) and None
        runner.run(client.stop(1.0))


def record(size: int) -> bytes:
    """A real segment with one tag of so many bytes that the whole has `size`."""
    names, start_ms = ("order", "order-1@10.0.2.1", "GET:/orders/{id}"), 1_700_000_000_000
    left = size - segment(*names, start_ms, 42).ByteSize() - 16
    tags = {"payload": os.urandom(left // 2).hex()}
    return segment(*names, start_ms, 42, tags=tags).SerializeToString()


def bursts(port: int, calls: int) -> int:
    messages = [record(1 * KIB) for _ in range(BURST)]
    with connected(port) as send:
        for _ in range(calls):
            send(Kind.SEGMENT, messages)
    return calls * BURST


def unary(port: int) -> int:
    ping = InstancePingPkg(service="order", serviceInstance="order-1@10.0.2.1")
    with connected(port) as send:
        for _ in range(UNARY_CALLS):
            send(Kind.INSTANCE_PING, [ping.SerializeToString()])
    return UNARY_CALLS


def singles(port: int, pause_s: float = 0.0) -> int:
    """By grpcio's client, which makes a frame of each message of a stream."""
    messages = [record(1536) for _ in range(100)]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.stream_unary(COLLECT)(paced(messages, pause_s))
    return SINGLES


def paced(messages: list[bytes], pause_s: float) -> Iterator[bytes]:
    for number in range(SINGLES):
        if pause_s:
            time.sleep(pause_s)
        yield messages[number % len(messages)]


def cost_us(process: psutil.Process, work: Callable[[], int]) -> float:
    """CPU of that process for each of the messages that `work` says it sent."""
    before = process.cpu_times()
    sent = work()
    after = process.cpu_times()
    return (after.user - before.user + after.system - before.system) / sent * 1e6


def loads(port: int) -> dict[str, Callable[[], int]]:
    return {
        "burst": lambda: bursts(port, BURSTS),
        "single": lambda: singles(port),
        "paused": lambda: singles(port, SINGLE_PAUSE_S),
        "unary": lambda: unary(port),
    }


def compared(ours: tuple[psutil.Process, int], theirs: tuple[psutil.Process, int]) -> None:
    """The two take turns, and the best of each counts: a shared machine only ever adds."""
    sides = [(process, loads(port)) for process, port in (ours, theirs)]
    for name, goal in GOALS.items():
        spent = [
            [cost_us(process, work[name]) for process, work in sides] for _ in range(ROUNDS + 1)
        ]
        our_us, their_us = map(min, zip(*spent[1:], strict=True))
        figure(f"receiver_{name}", 1e6 / our_us, "messages/s per core")
        figure(f"receiver_{name}_grpcio", 1e6 / their_us, "messages/s per core")
        figure(f"receiver_{name}_ratio", their_us / our_us, "x", at_least=goal)


def memory(process: psutil.Process, port: int, messages: int) -> None:
    """Resident memory after each hundred thousand messages."""
    seen = []
    for _ in range(0, messages, 100 * BURST):
        bursts(port, 100)
        seen.append(process.memory_info().rss / 1e6)
    half = len(seen) // 2
    figure("receiver_messages", messages, "messages")
    figure("receiver_rss_max", max(seen), "MB")
    figure("receiver_rss_growth", max(seen[half:]) - max(seen[:half]), "MB", at_most=GROWTH_MB_MAX)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--messages", type=int, default=MESSAGES, help="for the memory they leave")
    given = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        receiver(Path(directory)) as (process, port, taken),
    ):
        with grpcio() as theirs:
            compared((process, port), theirs)
        expected = (ROUNDS + 1) * (BURSTS * BURST + 2 * SINGLES + UNARY_CALLS)
        assert taken() == expected, f"{taken()} of {expected} records are in the queue"
        memory(process, port, given.messages)


if __name__ == "__main__":
    main()

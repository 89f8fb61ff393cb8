"""The satellite's promises about cost, on the real program with real gRPC on both sides.

    slo     1,043 records/s of 7.5 KB through the durable queue: CPU, memory, its slope, losses
    most    records/s per core with one filter, beside a bare grpcio relay without queue or filter
    rest    an idle satellite, and how long it takes to start

CPU is the process's own, so that a busy machine matters less. `--minutes 10 --warm-up 10` is the
whole SLO: memory comes to rest in the first ten minutes, in steps, so a slope is sought after them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from figures import figure
from skyfarer.base.errors import SkyfarerError
from skyfarer.base.units import KIB
from skyfarer.satellite.config import DEFAULT_FILE
from skyfarer.testing.satellites import SatelliteProgram
from skyfarer.testing.traces import segment
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Kind

SLO_RATE = 1043
SLO_RECORD_BYTES = 7500
SLO_CPU_MAX = 0.5
SLO_RSS_MB_MAX = 50.0
SLO_SLOPE_MB_MAX = 0.1  # a minute
SLOPE_SECONDS_MIN = 300  # in less it is noise, and before that memory comes to rest
AGENTS = 10
BURST = 1000
BURSTS, BURSTS_GRPCIO = 150, 40
SINGLES, SINGLE_PAUSE_S = 10_000, 0.0002  # so that each is read by itself
BURST_RATIO_MIN, SINGLE_RATIO_MIN = 3.0, 1.2
IDLE_S, IDLE_CPU_MAX = 15.0, 0.01
STARTS, START_S_MAX = 5, 1.5
COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
# Half of the segments are kept by their trace id alone, the others are decoded, and kept as slow.
FILTER = """
      filters:
        - plugin_name: sampler
          rate: 0.5
          keep_slow: 1ms
"""

SINK = """
import asyncio, sys
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import BY_PATH
from skyfarer.wire.server import GrpcServer, ServerSettings

count = 0

def keep(kind, payloads):
    global count
    count += len(payloads)

async def main():
    settings = ServerSettings(host="127.0.0.1", port=0)
    server = GrpcServer(settings, dict.fromkeys(BY_PATH, keep), None, Registry(), Health())
    await server.start()
    print(server.port, flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(count, flush=True)

asyncio.run(main())
"""
RELAY = """
import sys
from concurrent import futures
import grpc

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        send = channel.stream_unary(details.method)
        return grpc.stream_unary_rpc_method_handler(lambda messages, context: send(messages))

channel = grpc.insecure_channel(sys.argv[1])
server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Handler()])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


class Child:
    """A server in a process of its own; the first line it prints is its port."""

    def __init__(self, source: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", source, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self.port = int(self._line())

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def count(self) -> int:
        """Records a sink has had."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._line())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def child(source: str, *arguments: str) -> Iterator[Child]:
    one = Child(source, *arguments)
    try:
        yield one
    finally:
        one.kill()


@contextmanager
def connected(port: int) -> Iterator[Callable[[list[bytes]], None]]:
    """Bursts by our own client, packed into full frames as an agent's are; each call blocks."""
    with asyncio.Runner() as runner:
        client = GrpcClient(ClientSettings("127.0.0.1", port))
        runner.run(client.start())
        rpc = FORWARD[Kind.SEGMENT]
        yield lambda messages: runner.run(client.send(rpc, messages)) and None
        runner.run(client.stop(1.0))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def record(size: int) -> bytes:
    """A real segment with one tag of so many bytes that the whole has `size`."""
    names, start_ms = ("order", "order-1@10.0.2.1", "GET:/orders/{id}"), 1_700_000_000_000
    left = size - segment(*names, start_ms, 42).ByteSize() - 16
    tags = {"payload": os.urandom(left // 2).hex()}
    return segment(*names, start_ms, 42, tags=tags).SerializeToString()


def slo(directory: Path, seconds: float, warm_up_s: float) -> None:
    """Ten agents that report once a second, one after the other."""
    bursts = [[record(SLO_RECORD_BYTES) for _ in range(SLO_RATE // AGENTS)] for _ in range(AGENTS)]
    for extra in range(SLO_RATE % AGENTS):
        bursts[extra].append(record(SLO_RECORD_BYTES))
    with child(SINK) as sink, SatelliteProgram(directory, sink.address) as satellite:
        sent, resident = 0, []
        with connected(satellite.grpc_port) as send:
            for turn in paced_turns(max(warm_up_s, 1.0)):
                send(bursts[turn % AGENTS])
                sent += len(bursts[turn % AGENTS])
            begun_s, used_s, before = time.monotonic(), satellite.cpu_s(), sent
            for turn in paced_turns(seconds):
                send(bursts[turn % AGENTS])
                sent += len(bursts[turn % AGENTS])
                resident.append((time.monotonic() - begun_s, satellite.memory_bytes() / 1e6))
            took_s = time.monotonic() - begun_s
        ledger = satellite.await_empty()
        spent = (satellite.cpu_s() - used_s) / (sent - before)
        figure("slo_duration", took_s, "s")
        figure("slo_rate", (sent - before) / took_s, "records/s")
        figure("slo_cpu", spent * SLO_RATE, "cores", at_most=SLO_CPU_MAX)
        figure("slo_rss_max", max(mb for _, mb in resident), "MB", at_most=SLO_RSS_MB_MAX)
        slope = statistics.linear_regression(*zip(*resident, strict=True)).slope * 60
        long = min(seconds, warm_up_s) >= SLOPE_SECONDS_MIN
        figure("slo_rss_slope", slope, "MB/min", at_most=SLO_SLOPE_MB_MAX if long else None)
        figure("slo_lost", sent - sink.count(), "records", at_most=0)
        assert ledger.accepted == ledger.delivered == sent, ledger


def paced_turns(seconds: float) -> Iterator[int]:
    begun_s = time.monotonic()
    for turn in range(int(seconds * AGENTS)):
        time.sleep(max(0.0, begun_s + turn / AGENTS - time.monotonic()))
        yield turn


def filtering(directory: Path) -> Path:
    directory.mkdir()
    file = directory / "satellite.yaml"
    file.write_text(DEFAULT_FILE.read_text().replace("      filters: []\n", FILTER, 1))
    return file


def cost_us(pid: int, work: Callable[[], int]) -> float:
    """CPU of that process for each record that `work` says it brought through."""
    before = cpu_s(pid)
    records = work()
    return (cpu_s(pid) - before) / records * 1e6


def bursts(port: int, calls: int) -> int:
    messages = [record(1 * KIB) for _ in range(BURST)]
    with connected(port) as send:
        for _ in range(calls):
            send(messages)
    return calls * BURST


def singles(port: int) -> int:
    """By grpcio's client, which sends each message of a stream by itself."""
    messages = [record(1 * KIB) for _ in range(100)]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.stream_unary(COLLECT)(paced(messages))
    return SINGLES


def paced(messages: list[bytes]) -> Iterator[bytes]:
    for number in range(SINGLES):
        time.sleep(SINGLE_PAUSE_S)
        yield messages[number % len(messages)]


def most(directory: Path) -> None:
    with child(SINK) as sink, child(RELAY, sink.address) as relay:
        bursts(relay.port, 2)
        burst_relay = cost_us(relay.pid, lambda: bursts(relay.port, BURSTS_GRPCIO))
        single_relay = cost_us(relay.pid, lambda: singles(relay.port))
    with (
        child(SINK) as sink,
        SatelliteProgram(directory, sink.address, filtering(directory)) as satellite,
    ):
        port = satellite.grpc_port

        def through(load: Callable[[], int]) -> Callable[[], int]:
            return lambda: (load(), satellite.await_empty())[0]

        through(lambda: bursts(port, 5))()
        burst = cost_us(satellite.pid, through(lambda: bursts(port, BURSTS)))
        single = cost_us(satellite.pid, through(lambda: singles(port)))
        ledger = satellite.ledger()
        assert ledger.delivered == ledger.accepted == sink.count(), ledger
    for name, ours, theirs, ratio in (
        ("burst", burst, burst_relay, BURST_RATIO_MIN),
        ("single", single, single_relay, SINGLE_RATIO_MIN),
    ):
        figure(f"most_{name}", 1e6 / ours, "records/s per core")
        figure(f"most_{name}_grpcio_relay", 1e6 / theirs, "records/s per core")
        figure(f"most_{name}_ratio", theirs / ours, "x", at_least=ratio)


def started(directory: Path) -> float:
    """Seconds from the start of the program to its first answered record."""
    satellite = SatelliteProgram(directory, "127.0.0.1:1")
    begun_s = time.monotonic()
    satellite.spawn()
    try:
        with connected(satellite.grpc_port) as send:
            while True:
                try:
                    send([b"first"])
                    return time.monotonic() - begun_s
                except SkyfarerError:
                    time.sleep(0.01)
    finally:
        satellite.kill()


def rest(directory: Path) -> None:
    with SatelliteProgram(directory / "idle", "127.0.0.1:1") as satellite:
        time.sleep(1.0)
        begun_s, before = time.monotonic(), satellite.cpu_s()
        time.sleep(IDLE_S)
        share = (satellite.cpu_s() - before) / (time.monotonic() - begun_s)
        figure("idle_cpu", share, "cores", at_most=IDLE_CPU_MAX)
        figure("idle_rss", satellite.memory_bytes() / 1e6, "MB", at_most=30.0)
    starts = [started(directory / f"start-{number}") for number in range(STARTS)]
    figure("start_to_first_record", statistics.median(starts), "s", at_most=START_S_MAX)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=1.0, help="of the SLO; 1 by default")
    options.add_argument("--warm-up", type=float, default=0.0, help="minutes before them")
    parts = {
        "slo": lambda path: slo(path, given.minutes * 60, given.warm_up * 60),
        "most": most,
        "rest": rest,
    }
    options.add_argument("--only", choices=parts, help="one part instead of all")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        for name in [given.only] if given.only else parts:
            parts[name](Path(directory) / name)


if __name__ == "__main__":
    main()

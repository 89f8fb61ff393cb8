"""What receiving costs: CPU of the server process per message, ours against grpcio's.

Both servers only take the bytes and drop them. The load is the same for both and comes from our own
client: messages packed back to back into full DATA frames, as an agent's burst is.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from figures import figure
from skyfarer.base.units import KIB, MIB
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Kind

MESSAGE = os.urandom(1 * KIB)
BATCH = 1000
RATIO_MIN = 5.0
IDLE_MIB_MAX = 30.0

OURS = """
import asyncio
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import BY_PATH
from skyfarer.wire.server import GrpcServer, ServerSettings

async def main():
    settings = ServerSettings(host="127.0.0.1", port=0)
    doors = dict.fromkeys(BY_PATH, lambda kind, payloads: None)
    server = GrpcServer(settings, doors, None, Registry(), Health())
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
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
def running(source: str) -> Iterator[tuple[int, int]]:
    """The pid and port of a server in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def cost_us(pid: int, port: int, kind: Kind, calls: int, batch: int) -> float:
    """Per message of `calls` calls of `batch` messages, after one tenth of that to warm up."""
    client = GrpcClient(ClientSettings("127.0.0.1", port))
    await client.start()
    messages = [MESSAGE] * batch
    before = 0.0
    for number in range(calls + calls // 10):
        if number == calls // 10:
            before = cpu_s(pid)
        await client.send(FORWARD[kind], messages)
    spent = cpu_s(pid) - before
    await client.stop(1.0)
    return spent / (calls * batch) * 1e6


async def main() -> None:
    with running(OURS) as (pid, port):
        idle = resident_bytes(pid)
        burst = await cost_us(pid, port, Kind.SEGMENT, 300, BATCH)
        unary = await cost_us(pid, port, Kind.INSTANCE_PING, 4000, 1)
    with running(GRPCIO) as (pid, port):
        burst_grpcio = await cost_us(pid, port, Kind.SEGMENT, 60, BATCH)
        unary_grpcio = await cost_us(pid, port, Kind.INSTANCE_PING, 4000, 1)
    figure("receive_burst", burst, "µs/message")
    figure("receive_burst_grpcio", burst_grpcio, "µs/message")
    figure("receive_burst_ratio", burst_grpcio / burst, "x", at_least=RATIO_MIN)
    figure("receive_unary", unary, "µs/call")
    figure("receive_unary_grpcio", unary_grpcio, "µs/call")
    figure("receive_idle_rss", idle / MIB, "MiB", at_most=IDLE_MIB_MAX)


if __name__ == "__main__":
    asyncio.run(main())

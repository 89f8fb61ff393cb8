"""What a hostile message may cost in memory: measured on a server in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from skyfarer.base.units import KIB, MIB

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
MESSAGE_BYTES_MAX = 2 * MIB
SERVER = f"""
import asyncio, sys
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import BY_PATH
from skyfarer.wire.server import GrpcServer, ServerSettings

async def main():
    settings = ServerSettings(host="127.0.0.1", port=0, message_bytes_max={MESSAGE_BYTES_MAX})
    doors = dict.fromkeys(BY_PATH, lambda kind, payloads: None)
    server = GrpcServer(settings, doors, None, Registry(), Health())
    await server.start()
    print(server.port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await server.stop(1.0)

asyncio.run(main())
"""


@pytest.fixture
def server() -> Iterator[tuple[int, int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    with process:
        yield process.pid, int(process.stdout.readline())
        process.stdin.close()


def peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) * KIB


def test_a_decompression_bomb_is_refused_with_bounded_memory(server: tuple[int, int]) -> None:
    pid, port = server
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        send = channel.stream_unary(COLLECT)
        send(iter([b"warm"]), compression=grpc.Compression.Gzip, timeout=30)
        before = peak_bytes(pid)
        with pytest.raises(grpc.RpcError) as caught:
            send(iter([bytes(512 * MIB)]), compression=grpc.Compression.Gzip, timeout=60)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert peak_bytes(pid) - before < MESSAGE_BYTES_MAX + 10 * MIB

"""The real program, started, loaded, killed and stopped as an operator would."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import grpc
import trustme

from skyfarer.base.units import KIB
from skyfarer.telemetry.ledger import Ledger
from skyfarer.testing.programs import SATELLITE_ANYWHERE, eventually
from skyfarer.testing.traces import segment
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.messages import SegmentObject
from skyfarer.wire.rpc import Kind

IDLE_RSS_BYTES_MAX = 30_000_000
BOOKS = ("queue_accepted", "queue_delivered", "queue_queued", "queue_dropped")
COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
WAIT_S = 120.0
A_LIFE = 200
"""So many segments at least are acknowledged between two kills."""
READY = re.compile(r"skyfarer satellite is ready: agents at \S+:(\d+) .*http://\S+:(\d+)/metrics")


class Program:
    """`skyfarer satellite start` as a child; what it logs is kept in `log`."""

    def __init__(self, directory: Path, upstream: str, **environ: str) -> None:
        self._environ = {
            **os.environ,
            **SATELLITE_ANYWHERE,
            "SKYFARER_SATELLITE_DATA_DIR": str(directory),
            "SATELLITE_GRPC_CLIENT": upstream,
            "SATELLITE_TRACINGPIPE_SENDER_FLUSH_TIME": "20",
            "SKYFARER_SATELLITE_SENDER_RETRY_MAXIMUM": "200ms",
            **environ,
        }
        self.log = ""
        self._process: asyncio.subprocess.Process
        self._telemetry_port = 0
        self.grpc_port = 0

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "skyfarer.cli", "satellite", "start"),
            env=self._environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = (await asyncio.wait_for(self._process.stdout.readline(), WAIT_S)).decode()
        ready = READY.match(line)
        assert ready, line + (await self._process.communicate())[1].decode()
        self.grpc_port, self._telemetry_port = int(ready[1]), int(ready[2])

    async def end(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        _, errors = await asyncio.wait_for(self._process.communicate(), WAIT_S)
        self.log = errors.decode()
        assert self._process.returncode is not None
        return self._process.returncode

    def memory(self, name: str) -> int:
        return int(self._status(name)) * KIB

    async def until_noticed(self, number: signal.Signals) -> None:
        """A signal that comes while the same one waits is one with it."""

        def noticed() -> bool:
            return not int(self._status("ShdPnd"), 16) >> (number - 1) & 1

        await asyncio.to_thread(eventually, noticed, WAIT_S, "it has noticed the signal")

    def _status(self, name: str) -> str:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(line.split()[1] for line in lines if line.startswith(name))

    async def get(self, path: str) -> str:
        url = f"http://127.0.0.1:{self._telemetry_port}{path}"

        def read() -> str:
            with urllib.request.urlopen(url, timeout=WAIT_S) as response:
                return str(response.read().decode())

        return await asyncio.to_thread(read)

    async def ledger(self) -> Ledger:
        text = await self.get("/metrics")
        lines = [line for line in text.splitlines() if line.startswith(BOOKS)]
        values = {
            name: int(float(value)) for name, value in (line.rsplit(" ", 1) for line in lines)
        }
        return Ledger(
            values["queue_accepted_total"],
            values["queue_delivered_total"],
            values["queue_queued_records"],
            {name: value for name, value in values.items() if name.startswith("queue_dropped")},
        )

    async def until_empty(self) -> Ledger:
        async with asyncio.timeout(WAIT_S):
            while True:
                ledger = await self.ledger()
                if not ledger.queued:
                    return ledger
                await asyncio.sleep(0.05)


class Load:
    """Agents that stream segments and remember which ones were acknowledged."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._number = 0
        self.acknowledged: set[str] = set()

    def run(self, port: int) -> None:
        """Until the satellite is gone; blocks, so it wants a thread."""
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            collect = channel.stream_unary(COLLECT)
            while True:
                batch = [self._id() for _ in range(20)]
                messages = [self._segment(one) for one in batch]
                try:
                    collect(iter(messages), timeout=WAIT_S)
                except grpc.RpcError:
                    return
                self.acknowledged.update(batch)

    def _id(self) -> str:
        self._number += 1
        return f"{self._prefix}.{self._number}"

    def _segment(self, name: str) -> bytes:
        made = segment("order", "order-1", "GET:/", 1_700_000_000_000, 5, segment_id=name)
        return made.SerializeToString()


def busy(loads: Sequence[Load]) -> bool:
    return sum(len(load.acknowledged) for load in loads) >= A_LIFE


def arrived(upstream: Upstream) -> set[str]:
    return {
        SegmentObject.FromString(payload).traceSegmentId
        for payload in upstream.payloads(Kind.SEGMENT)
    }


def test_importing_the_satellite_loads_nothing_heavy() -> None:
    heavy = ("pyspark", "pyarrow", "duckdb", "google.protobuf", "numpy", "grpc", "skyfarer.oap")
    code = (
        "import sys, skyfarer.satellite, skyfarer.satellite.app;"
        "import skyfarer.satellite.gatherers.grpc, skyfarer.satellite.senders.grpc;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


def test_an_idle_satellite_stays_within_30_mb(tmp_path: Path) -> None:
    async def scenario() -> None:
        program = Program(tmp_path, "127.0.0.1:1")
        await program.start()
        await program.get("/metrics")
        await program.get("/healthcheck")
        resident = program.memory("VmRSS")
        assert await program.end(signal.SIGTERM) == 0
        assert resident <= IDLE_RSS_BYTES_MAX, f"{resident / 1e6:.1f} MB"

    asyncio.run(scenario())


def test_everything_acknowledged_arrives_though_the_satellite_is_killed_again_and_again(
    tmp_path: Path,
) -> None:
    random = Random(5)

    async def scenario() -> None:
        upstream = Upstream()
        await upstream.start()
        acknowledged: set[str] = set()
        for round_number in range(6):
            program = Program(tmp_path, upstream.address)
            await program.start()
            loads = [Load(f"{round_number}.{agent}") for agent in range(3)]
            running = [
                asyncio.create_task(asyncio.to_thread(load.run, program.grpc_port))
                for load in loads
            ]
            if round_number == 3:
                await upstream.stop(0.0)
            await asyncio.sleep(random.uniform(0.2, 1.0))
            await asyncio.to_thread(eventually, partial(busy, loads), WAIT_S, "load")
            assert await program.end(signal.SIGKILL) == -signal.SIGKILL
            await asyncio.gather(*running)
            acknowledged |= {name for load in loads for name in load.acknowledged}
            if round_number == 4:
                await upstream.start()
        program = Program(tmp_path, upstream.address)
        await program.start()
        ledger = await program.until_empty()
        assert await program.end(signal.SIGTERM) == 0
        await upstream.stop()
        assert len(acknowledged) >= 6 * A_LIFE
        assert not acknowledged - arrived(upstream)
        assert ledger.balanced
        assert ledger.dropped == {}
        assert ledger.delivered == ledger.accepted >= len(acknowledged)
        assert ledger.accepted == len(arrived(upstream))

    asyncio.run(scenario())


def test_sigterm_during_an_outage_stops_in_time_and_says_what_it_left(tmp_path: Path) -> None:
    async def scenario() -> None:
        program = Program(tmp_path, "127.0.0.1:1", SATELLITE_SHUTDOWN_HOOK_TIME="500ms")
        await program.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{program.grpc_port}") as channel:
            await channel.stream_unary(COLLECT)(iter([b"one", b"two", b"three"]))
        assert await program.end(signal.SIGTERM) == 0
        assert (
            "accepted 3 = delivered 0 + queued 3 + dropped 0;"
            " 3 records wait on disk for the next start" in program.log
        )
        upstream = Upstream()
        await upstream.start()
        again = Program(tmp_path, upstream.address)
        await again.start()
        await again.until_empty()
        assert await again.end(signal.SIGINT) == 0
        assert upstream.payloads(Kind.SEGMENT) == [b"one", b"two", b"three"]
        await upstream.stop()

    asyncio.run(scenario())


def test_a_second_signal_ends_the_draining_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        program = Program(tmp_path, "127.0.0.1:1", SATELLITE_SHUTDOWN_HOOK_TIME="1h")
        await program.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{program.grpc_port}") as channel:
            await channel.stream_unary(COLLECT)(iter([b"one"]))
        program._process.send_signal(signal.SIGTERM)
        await program.until_noticed(signal.SIGTERM)
        assert await program.end(signal.SIGTERM) == 0
        assert "it waits on disk" in program.log

    asyncio.run(scenario())


def failing(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skyfarer.cli", "satellite", "start"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def test_a_data_directory_in_use_is_refused_in_one_sentence(tmp_path: Path) -> None:
    async def scenario() -> None:
        program = Program(tmp_path, "127.0.0.1:1")
        await program.start()
        second = await asyncio.to_thread(failing, program._environ)
        assert second.returncode == 1
        assert second.stderr.startswith("skyfarer: ")
        assert len(second.stderr.splitlines()) == 1
        await program.end(signal.SIGTERM)

    asyncio.run(scenario())


def test_an_address_in_use_is_refused_in_one_sentence(tmp_path: Path) -> None:
    async def scenario() -> None:
        upstream = Upstream()
        await upstream.start()
        environ = {
            **SATELLITE_ANYWHERE,
            "SKYFARER_SATELLITE_DATA_DIR": str(tmp_path),
            "SATELLITE_GRPC_ADDRESS": upstream.address,
            "SATELLITE_GRPC_CLIENT": "127.0.0.1:1",
        }
        refused = await asyncio.to_thread(failing, environ)
        await upstream.stop()
        assert refused.returncode == 1
        assert f"cannot listen on {upstream.address}" in refused.stderr
        assert refused.stderr.startswith("skyfarer: ")
        assert len(refused.stderr.splitlines()) == 1

    asyncio.run(scenario())


def test_logs_may_be_json(tmp_path: Path) -> None:
    async def scenario() -> None:
        program = Program(tmp_path, "127.0.0.1:1", SKYFARER_SATELLITE_LOGGER_JSON="true")
        await program.start()
        assert await program.end(signal.SIGTERM) == 0
        events: list[dict[str, Any]] = [json.loads(line) for line in program.log.splitlines()]
        assert any("accepted 0 = delivered 0" in event["message"] for event in events)

    asyncio.run(scenario())


def test_a_satellite_that_shall_speak_tls_does_so(tmp_path: Path) -> None:
    """Though one that need not does without the module altogether."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    files = {name: tmp_path / f"{name}.pem" for name in ("cert", "key")}
    certificate.cert_chain_pems[0].write_to_path(files["cert"])
    certificate.private_key_pem.write_to_path(files["key"])

    async def scenario() -> None:
        environ = {f"SATELLITE_GRPC_TLS_{name.upper()}_FILE": str(files[name]) for name in files}
        program = Program(tmp_path / "data", "127.0.0.1:1", **environ)
        await program.start()
        trust = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
        target = f"127.0.0.1:{program.grpc_port}"
        async with grpc.aio.secure_channel(target, trust) as channel:
            await channel.stream_unary(COLLECT)(iter([b"one", b"two"]))
        assert (await program.ledger()).accepted == 2
        assert await program.end(signal.SIGTERM) == 0

    asyncio.run(scenario())

"""A satellite that becomes another one under load: nothing lost, connections kept."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.satellite.config import DEFAULT_FILE
from skyfarer.testing.programs import Program, eventually, free_port
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.rpc import Kind

LOGS = "/skywalking.v3.LogReportService/collect"
DISCOVERY = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"
TRACES = "/skywalking.v3.TraceSegmentReportService/collect"
WAIT_S = 120.0

SPLIT = """
data_directory: ${SKYFARER_SATELLITE_DATA_DIR}
telemetry: {prometheus: {address: "${SATELLITE_TELEMETRY_PROMETHEUS_ADDRESS}"}}
sharing:
  clients: [{plugin_name: grpc-client, server_addr: "${SATELLITE_GRPC_CLIENT}"}]
  servers: [{plugin_name: grpc-server, address: "${SATELLITE_GRPC_ADDRESS}"}]
pipes:
"""


def pipe(name: str, receiver: str, flush_ms: int = 20, more: str = "") -> str:
    return f"""
  - common_config: {{pipe_name: {name}}}
    gatherer: {{server_name: grpc-server, receiver: {{plugin_name: {receiver}}}{more}}}
    sender: {{client_name: grpc-client, flush_time: {flush_ms}, retry: {{maximum: 100ms}}}}
"""


class Agent:
    """One connection that sends numbered segments until told to stop, one call after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stopped = False
        self.acknowledged: list[bytes] = []
        self.failures: list[str] = []

    def run(self) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{self._port}") as channel:
            collect = channel.stream_unary(TRACES)
            number = 0
            while not self._stopped:
                batch = [b"%d" % (number + n) for n in range(5)]
                number += 5
                try:
                    collect(iter(batch), timeout=WAIT_S)
                except grpc.RpcError as error:
                    self.failures.append(str(error.code()))
                else:
                    self.acknowledged += batch

    def stop(self) -> None:
        self._stopped = True

    async def sent_more(self, records: int) -> None:
        wanted = len(self.acknowledged) + records
        async with asyncio.timeout(WAIT_S):
            while True:
                if len(self.acknowledged) >= wanted:
                    return
                await asyncio.sleep(0.01)


def written(directory: Path, text: str) -> Path:
    file = directory / "mine.yaml"
    file.write_text(text)
    return file


def test_reloads_under_load_lose_nothing_and_refuse_nobody(
    rig: Callable[..., Any], tmp_path: Path
) -> None:
    """Every reload changes the pipe, so its queue changes hands while calls come in."""

    async def scenario() -> None:
        tracing = "grpc-native-tracing-receiver"
        config = written(tmp_path, SPLIT + pipe("traces", tracing))
        async with rig(config=config) as r:
            agent = Agent(r.satellite.address("grpc-server")[1])
            sending = asyncio.create_task(asyncio.to_thread(agent.run))
            for flush_ms in range(21, 31):
                written(tmp_path, SPLIT + pipe("traces", tracing, flush_ms))
                await r.satellite.reload(r.load())
                await agent.sent_more(20)
            agent.stop()
            await sending
            await r.until_empty()
            assert agent.failures == []
            arrived = r.upstream.payloads(Kind.SEGMENT)
            assert list(dict.fromkeys(arrived)) == agent.acknowledged
            assert r.satellite.ledger().accepted == len(agent.acknowledged)
            _, text = await r.get("/metrics")
            assert 'satellite_reloads_total{outcome="done"} 10' in text
            received = 'gatherer_receive_count{pipe="traces",status="all"}'
            assert f"{received} {len(agent.acknowledged)}\n" in text

    asyncio.run(scenario())


def test_a_stream_that_is_open_goes_on_through_reloads(
    rig: Callable[..., Any], tmp_path: Path
) -> None:
    """So its connection was kept: a client-stream call ends with the connection it began on."""

    async def scenario() -> None:
        tracing = "grpc-native-tracing-receiver"
        config = written(tmp_path, SPLIT + pipe("traces", tracing))
        waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        async with rig(config=config) as r:
            call = asyncio.create_task(r.collect(iter(waiting.get, b"")))
            for number in range(5):
                waiting.put(b"%d" % number)
                await r.until_accepted(number + 1)
                written(tmp_path, SPLIT + pipe("traces", tracing, 30 + number))
                await r.satellite.reload(r.load())
            waiting.put(b"last")
            waiting.put(b"")
            assert await call == b""
            await r.until_empty()
            arrived = dict.fromkeys(r.upstream.payloads(Kind.SEGMENT))
            assert list(arrived) == [b"0", b"1", b"2", b"3", b"4", b"last"]

    asyncio.run(scenario())


def test_a_path_moves_to_another_pipe_and_the_old_one_is_drained(
    rig: Callable[..., Any], tmp_path: Path
) -> None:
    async def scenario() -> None:
        everything = pipe("everything", "grpc-native-receiver", flush_ms=60_000)
        async with rig(config=written(tmp_path, SPLIT + everything)) as r:
            await r.collect([b"before"])
            await r.collect([b"a log"], LOGS)
            apart = pipe("traces", "grpc-native-tracing-receiver")
            apart += pipe("logs", "grpc-native-log-receiver")
            written(tmp_path, SPLIT + apart)
            await r.satellite.reload(r.load())
            # What the old pipe held waited for company; it was handed over all the same.
            assert r.upstream.payloads(Kind.SEGMENT) == [b"before"]
            await r.collect([b"after"])
            await r.collect([b"another log"], LOGS)
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == [b"before", b"after"]
            assert r.upstream.payloads(Kind.LOG) == [b"a log", b"another log"]
            assert [one.name for one in r.satellite.pipes] == ["traces", "logs"]
            assert r.satellite.ledger().delivered == 4
            _, text = await r.get("/metrics")
            assert 'sender_committed_offset{pipe="logs"} 1' in text
            assert 'sender_committed_offset{pipe="everything"}' not in text

    asyncio.run(scenario())


def test_a_pipe_that_comes_back_goes_on_with_its_queue_and_is_counted_once(
    rig: Callable[..., Any], tmp_path: Path
) -> None:
    async def scenario() -> None:
        logs = pipe("logs", "grpc-native-log-receiver")
        traces = pipe("traces", "grpc-native-tracing-receiver")
        async with rig(config=written(tmp_path, SPLIT + logs + traces)) as r:
            await r.collect([b"one"])
            await r.until_empty()
            for text in (SPLIT + logs, SPLIT + logs + traces):
                written(tmp_path, text)
                await r.satellite.reload(r.load())
                assert r.satellite.ledger().accepted == 1
            await r.collect([b"two"])
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == [b"one", b"two"]
            assert r.satellite.ledger().accepted == 2

    asyncio.run(scenario())


def test_questions_are_answered_through_reloads(rig: Callable[..., Any], tmp_path: Path) -> None:
    async def scenario() -> None:
        async with rig(config=written(tmp_path, SPLIT + pipe("all", "grpc-native-receiver"))) as r:
            r.upstream.answers[DISCOVERY] = b"an answer"
            for flush_ms in (21, 22):
                written(tmp_path, SPLIT + pipe("all", "grpc-native-receiver", flush_ms))
                await r.satellite.reload(r.load())
                assert await r.unary(DISCOVERY, b"") == b"an answer"

    asyncio.run(scenario())


def test_what_is_queued_stays_queued_and_goes_to_the_new_upstream(
    rig: Callable[..., Any], tmp_path: Path
) -> None:
    async def scenario() -> None:
        tracing = pipe("traces", "grpc-native-tracing-receiver")
        async with rig(up=False, config=written(tmp_path, SPLIT + tracing)) as r:
            await r.collect([b"one", b"two"])
            other = Upstream()
            await other.start()
            address = "${SATELLITE_GRPC_CLIENT}"
            written(tmp_path, SPLIT.replace(address, other.address) + tracing)
            await r.satellite.reload(r.load())
            await r.until_empty()
            assert other.payloads(Kind.SEGMENT) == [b"one", b"two"]
            assert r.satellite.ledger().balanced
            await other.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("flush_time", "flush_tiem", "has no key 'flush_tiem'; did you mean 'flush_time'?"),
        ("native-tracing", "native-trace", "there is no receiver named"),
        ("data_directory: ${", "data_directory: /elsewhere${", "data_directory cannot change"),
        ("{maximum: 100ms}", "{maximum: 1ns}", "is no duration"),
    ],
)
def test_a_wrong_configuration_is_refused_and_the_old_one_stays(
    rig: Callable[..., Any], tmp_path: Path, old: str, new: str, says: str
) -> None:
    async def scenario() -> None:
        text = SPLIT + pipe("traces", "grpc-native-tracing-receiver")
        async with rig(config=written(tmp_path, text)) as r:
            pipes = r.satellite.pipes
            assert old in text
            written(tmp_path, text.replace(old, new))
            with pytest.raises(ConfigError, match=says):
                await r.satellite.reload(r.load())
            assert r.satellite.pipes == pipes
            await r.collect([b"one"])
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == [b"one"]

    asyncio.run(scenario())


@pytest.mark.parametrize("what", ["an address in use", "another shape of the queue", "no key file"])
def test_what_fails_while_it_changes_brings_the_old_one_back(
    rig: Callable[..., Any], tmp_path: Path, what: str
) -> None:
    """By then a pipe may have changed hands already: it changes back, and sends on."""

    async def scenario() -> None:
        tracing = "grpc-native-tracing-receiver"
        text = SPLIT + pipe("traces", tracing)
        taken = Upstream()
        await taken.start()
        new = {
            "an address in use": SPLIT.replace("${SATELLITE_GRPC_ADDRESS}", taken.address)
            + pipe("traces", tracing, flush_ms=21),
            "another shape of the queue": SPLIT
            + pipe(
                "traces",
                tracing,
                20,
                ", queue: {plugin_name: mmap-queue, segment_bytes: 131072, record_bytes_max: 1000}",
            ),
            "no key file": SPLIT.replace(
                "grpc-client,", "grpc-client, enable_tls: true, ca_pem_path: /nowhere/ca.pem,"
            )
            + pipe("traces", tracing),
        }[what]
        async with rig(config=written(tmp_path, text)) as r:
            agent = Agent(r.satellite.address("grpc-server")[1])
            sending = asyncio.create_task(asyncio.to_thread(agent.run))
            await r.until(lambda: agent.acknowledged)
            written(tmp_path, new)
            with pytest.raises(PermanentError):
                await r.satellite.reload(r.load())
            await agent.sent_more(1)
            agent.stop()
            await sending
            assert agent.failures == []
            await r.collect([b"last"])
            await r.until_empty()
            arrived = r.upstream.payloads(Kind.SEGMENT)
            assert set(agent.acknowledged) <= set(arrived)
            assert arrived[-1] == b"last"
            _, metrics = await r.get("/metrics")
            assert 'satellite_reloads_total{outcome="refused"} 1' in metrics
        await taken.stop()

    asyncio.run(scenario())


def test_a_second_server_opens_and_closes_while_the_first_stays(
    rig: Callable[..., Any], tmp_path: Path
) -> None:
    async def scenario() -> None:
        logs = pipe("logs", "grpc-native-log-receiver")
        async with rig(config=written(tmp_path, SPLIT + logs)) as r:
            first = r.satellite.address("grpc-server")
            two = SPLIT.replace(
                "servers: [",
                'servers: [{plugin_name: grpc-server, name: b, address: "127.0.0.1:0"},',
            )
            moved = pipe("traces", "grpc-native-tracing-receiver").replace(
                "server_name: grpc-server", "server_name: b"
            )
            written(tmp_path, two + logs + moved)
            await r.satellite.reload(r.load())
            assert r.satellite.address("grpc-server") == first
            _, port = r.satellite.address("b")
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                call = channel.stream_unary(TRACES)
                await asyncio.to_thread(lambda: call(iter([b"one"]), timeout=WAIT_S))
            written(tmp_path, SPLIT + logs)
            await r.satellite.reload(r.load())
            assert r.upstream.payloads(Kind.SEGMENT) == [b"one"]
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(scenario())


def test_the_telemetry_port_moves_or_stays_where_it_was(
    rig: Callable[..., Any], tmp_path: Path
) -> None:
    async def scenario() -> None:
        logs = pipe("logs", "grpc-native-log-receiver")
        async with rig(config=written(tmp_path, SPLIT + logs)) as r:
            before = r.satellite.telemetry.port
            address = "${SATELLITE_TELEMETRY_PROMETHEUS_ADDRESS}"
            wanted = free_port()
            written(tmp_path, SPLIT.replace(address, f"127.0.0.1:{wanted}") + logs)
            await r.satellite.reload(r.load())
            assert r.satellite.telemetry.port == wanted
            assert (await r.get("/ready"))[0] == 200
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", before)
            written(tmp_path, SPLIT.replace(address, r.upstream.address) + logs)
            with pytest.raises(PermanentError, match="telemetry cannot listen"):
                await r.satellite.reload(r.load())
            assert r.satellite.telemetry.port == wanted
            assert (await r.get("/ready"))[0] == 200

    asyncio.run(scenario())


def test_sighup_reads_the_file_again(tmp_path: Path) -> None:
    metrics = free_port()
    tracing = "grpc-native-tracing-receiver"
    config = written(tmp_path, SPLIT + pipe("traces", tracing))
    environ = {
        "SKYFARER_SATELLITE_DATA_DIR": str(tmp_path / "data"),
        "SATELLITE_GRPC_ADDRESS": f"127.0.0.1:{free_port()}",
        "SATELLITE_GRPC_CLIENT": "127.0.0.1:1",
        "SATELLITE_TELEMETRY_PROMETHEUS_ADDRESS": f"127.0.0.1:{metrics}",
    }
    log = tmp_path / "log"
    program = Program(["satellite", "start", "--config", str(config)], environ, log)
    program.start()
    try:
        written(tmp_path, SPLIT + pipe("traces", "grpc-native-trace-receiver"))
        os.kill(program.pid, signal.SIGHUP)
        eventually(lambda: "is refused, the one before stays" in log.read_text(), WAIT_S, "refused")
        assert "there is no receiver named 'grpc-native-trace-receiver'" in log.read_text()
        written(tmp_path, SPLIT + pipe("renamed", tracing))
        os.kill(program.pid, signal.SIGHUP)
        eventually(lambda: "the configuration was read again" in log.read_text(), WAIT_S, "read")
        url = f"http://127.0.0.1:{metrics}/metrics"
        table = subprocess.run(
            [sys.executable, "-m", "skyfarer.cli", "satellite", "top", "--once", "--url", url],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=True,
        ).stdout
        assert "renamed" in table
        assert "traces" not in table
    finally:
        assert program.stop() == 0


def test_a_reload_of_the_same_file_changes_nothing(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(config=DEFAULT_FILE) as r:
            pipes, listening = r.satellite.pipes, r.satellite.listening
            await r.satellite.reload(r.load())
            assert r.satellite.pipes == pipes
            assert r.satellite.listening == listening

    logging.getLogger("skyfarer").setLevel(logging.INFO)
    asyncio.run(scenario())

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import psutil
import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.cli.demo import books, ports, verification
from skyfarer.cli.demo.children import ChildError
from skyfarer.cli.demo.run import programs
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.http import TelemetryServer
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing import reports
from skyfarer.testing.expected import Entity
from skyfarer.testing.traffic import DemoTraffic

START_MS = 1_700_000_040_000


def demo(*arguments: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "skyfarer.cli", "demo", *arguments],
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_until(process: subprocess.Popen[str], words: str, timeout_s: float = 480.0) -> str:
    """What it printed up to the line with these words, as soon as that line is there: lines that
    came together would wait in a buffer for the next."""
    assert process.stdout is not None
    output, seen = process.stdout.fileno(), ""
    deadline_s = time.monotonic() + timeout_s
    while "\n" not in seen.partition(words)[2]:
        left_s = max(deadline_s - time.monotonic(), 0.0)
        readable, _, _ = select.select([output], [], [], left_s)
        piece = os.read(output, 4096).decode(errors="replace") if readable else ""
        assert piece, f"{words!r} not within {timeout_s} s after:\n{seen}"
        seen += piece
    return seen


def shown_as_sent(traffic: DemoTraffic) -> verification.Shown:
    expected = traffic.expected
    return {
        entity: {
            minute: verification.derived(total) for minute, total in expected.series(entity).items()
        }
        for scope in ("service", "service_instance", "endpoint")
        for entity in expected.entities(scope)
    }


def busy(traces: int = 500) -> DemoTraffic:
    traffic = DemoTraffic(Random(2), SystemClock())
    for number in range(traces):
        traffic.trace(START_MS + 100 * number)
    return traffic


def test_what_is_shown_as_it_was_sent_has_no_differences() -> None:
    traffic = busy()

    assert list(verification.differences(shown_as_sent(traffic), traffic.expected)) == []


def test_one_call_too_many_or_too_few_is_found_and_named() -> None:
    traffic = busy()
    shown = shown_as_sent(traffic)
    entity = Entity("service", "order")
    minute = START_MS // 60_000
    right = shown[entity][minute]
    shown[entity][minute] = verification.Minute(right.calls + 1, right.resp_time, right.sla)
    del shown[Entity("service", "stock")][minute]

    first, second = verification.differences(shown, traffic.expected)

    assert "service order" in first
    assert f"calls={right.calls + 1}" in first
    assert "service stock" in second
    assert "shown None" in second


def test_what_fails_or_is_slow_is_written_to_the_log_of_whoever_did_it() -> None:
    traffic = DemoTraffic(Random(2), SystemClock())
    segments = [one for number in range(500) for one in traffic.trace(START_MS + 100 * number)]

    lines = reports.logs(segments)

    failed = {one.traceSegmentId for one in segments if one.spans[-1].isError}
    errors = [one for one in lines if one.tags.data[0].value == "ERROR"]
    assert failed
    assert {one.traceContext.traceSegmentId for one in errors} == failed
    assert len(errors) == len(failed)
    assert any("slow statement" in one.body.text.text for one in lines)


def test_errors_are_read_back_exactly_from_the_success_ratio() -> None:
    for calls in range(1, 200):
        for errors in range(calls + 1):
            sla = (calls - errors) * 10_000 // calls
            assert verification.Minute(calls, 0, sla).errors == errors


def test_the_table_puts_shown_beside_sent() -> None:
    traffic = busy()

    lines = list(verification.table(shown_as_sent(traffic), traffic.expected))

    assert [line.split()[0] for line in lines] == ["service", "gateway", "order", "stock"]
    for line in lines[1:]:
        _, calls, sent, _, average, sent_average, errors, sent_errors = line.split()
        assert (calls, average, errors) == (sent, sent_average, sent_errors)


def test_the_satellites_ledger_is_read_from_its_metrics() -> None:
    registry = Registry()
    registry.set(table.QUEUE_ACCEPTED, 10)
    registry.set(table.QUEUE_DELIVERED, 6)
    registry.set(table.QUEUE_QUEUED, 1)
    registry.set(table.QUEUE_DROPPED, 2, reason="overflow")
    registry.set(table.QUEUE_DROPPED, 1, reason="rejected")

    async def scenario() -> Ledger:
        health = Health()
        health.started()
        server = TelemetryServer("127.0.0.1", 0, registry, health)
        await server.start()
        try:
            return await books.of_satellite(f"http://127.0.0.1:{server.port}/metrics")
        finally:
            await server.stop(1.0)

    ledger = asyncio.run(scenario())

    assert ledger == Ledger(10, 6, 1, {"overflow": 2, "rejected": 1})
    assert ledger.balanced


def test_a_default_port_that_is_taken_is_replaced_and_said() -> None:
    said: list[str] = []
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8080))
            taken.listen()
        except OSError:
            assert taken.getsockname()[1] == 0  # somebody else has it, which serves as well
        with ports.chosen(said.append) as chosen:
            numbers = list(vars(chosen).values())

    assert chosen.ui != 8080
    assert f"port 8080 is taken, so the web page gets {chosen.ui}" in said
    assert len(set(numbers)) == len(numbers)


CHOOSING = """
import sys
from skyfarer.cli.demo import ports
sys.stdin.readline()
with ports.chosen(lambda what: None) as chosen:
    print(*vars(chosen).values(), flush=True)
    sys.stdin.readline()
"""


def test_demos_that_choose_at_the_same_time_choose_different_ports() -> None:
    command = [sys.executable, "-c", CHOOSING]
    pipe = subprocess.PIPE
    demos = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for one in demos:
        assert one.stdin is not None
        one.stdin.write("choose\n")
        one.stdin.flush()
    numbers = [int(text) for one in demos if one.stdout for text in one.stdout.readline().split()]
    for one in demos:
        one.communicate("end\n", timeout=240)

    assert len(numbers) == 4 * 6
    assert len(set(numbers)) == len(numbers)


def test_what_a_demo_had_chosen_is_free_for_the_next_when_it_has_ended() -> None:
    with ports.chosen(lambda what: None) as first:
        pass
    with ports.chosen(lambda what: None) as second:
        pass
    defaults = {11800, 12800, 1234, 11801, 1235, 8080}

    assert defaults & set(vars(first).values()) <= set(vars(second).values())


def test_a_demo_whose_port_is_taken_by_another_program_says_which_and_ends(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()
        chosen = ports.Ports(0, port, 0, 0, 0, 0)
        oap = programs(tmp_path, chosen)[0]
        oap.start()
        with pytest.raises(ChildError) as ended:
            asyncio.run(oap.ready(lambda what: None))

    assert "the OAP ended by itself with code 1" in str(ended.value)
    assert f"cannot listen on {host}:{port} for queries" in str(ended.value)
    assert "set SW_CORE_REST_PORT to another port" in str(ended.value)


def test_a_program_that_dies_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    process = demo("--data-dir", str(tmp_path / "new"), SW_STORAGE="nonsense")
    _, errors = process.communicate(timeout=480)

    assert process.returncode == 1
    assert "the OAP ended by itself with code 2" in errors
    assert "storage.selector" in errors
    assert "Traceback" not in errors
    assert "nonsense" in (tmp_path / "new" / "oap.log").read_text()


def test_a_directory_that_is_not_empty_cannot_be_verified(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    process = demo("--seconds", "1", "--data-dir", str(tmp_path))
    _, errors = process.communicate(timeout=240)

    assert process.returncode == 2
    assert "is not empty" in errors
    assert len(errors.splitlines()) == 1


def test_ctrl_c_while_starting_stops_everything_it_started() -> None:
    process = demo()
    read_until(process, "starting the web page")
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=900)

    assert process.returncode == 0, errors
    assert errors == ""
    assert not [child for child in children if child.is_running()]


@pytest.mark.e2e
def test_the_demo_proves_that_what_was_sent_is_shown_once() -> None:
    process = demo("--seconds", "6")
    page = re.search(r"http://127\.0\.0\.1:\d+/", read_until(process, "http://", 600.0))
    output, errors = process.communicate(timeout=900)

    assert page
    assert process.returncode == 0, output + errors
    assert "everything that was sent is shown, once" in output
    assert re.search(r"\b([1-9]\d*) lines of log are shown, \1 were sent", output)
    assert re.search(r"satellite +accepted (\d+) = delivered \1 \+ queued 0 \+ dropped 0", output)
    assert re.search(r"OAP +accepted (\d+) = delivered \1 \+ queued 0 \+ dropped 0", output)

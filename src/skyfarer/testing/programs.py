"""Whole programs as a test starts them: own process group, own data directory, free ports."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from skyfarer.base.units import KIB

# A satellite that gets in nobody's way, whatever else runs on this machine.
SATELLITE_ANYWHERE = {
    "SATELLITE_GRPC_ADDRESS": "127.0.0.1:0",
    "SATELLITE_TELEMETRY_PROMETHEUS_ADDRESS": "127.0.0.1:0",
    "SKYFARER_SATELLITE_HTTP_ADDRESS": "127.0.0.1:0",
    "SKYFARER_SATELLITE_OTLP_GRPC_ADDRESS": "127.0.0.1:0",
    "SKYFARER_SATELLITE_OTLP_HTTP_ADDRESS": "127.0.0.1:0",
}

READY = " is ready: "
READY_TIMEOUT_S = 480.0
"""An OAP takes half a minute of processor time to start, and a busy machine gives it a tenth."""
STOP_TIMEOUT_S = 180.0
ANSWER_TIMEOUT_S = 120.0
STACKS_WITHIN_S = 10.0
LOG_LINES, STACK_LINES = 15, 150
FIRST_PORT = 15_000
PORTS_HELD_MAX = 300
"""A name is an open file, of which a process may have a thousand."""
_held_ports = list[socket.socket]()


def free_port() -> int:
    """A port of the loopback that stays this process's own.

    The kernel gives the ports of its ephemeral range to whoever connects or listens anywhere, so
    one that was free when we looked may be gone when a program that takes half a minute to start
    binds it. Ours are below that range, and a name that each test process can see holds them, the
    last PORTS_HELD_MAX of them. A client that calls such a port while nobody listens there cannot
    be given it as its own either, and so be connected to itself.
    """
    while True:
        port = random.randrange(FIRST_PORT, first_ephemeral_port())
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0skyfarer-test-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            name.close()
        else:
            _held_ports.append(name)
            if len(_held_ports) > PORTS_HELD_MAX:
                _held_ports.pop(0).close()
            return port


def first_ephemeral_port() -> int:
    return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def eventually(holds: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Returns as soon as it holds; AssertionError naming `what` when it never does. The last look
    comes after the deadline: whoever was kept from looking has not seen that it did not hold."""
    deadline, over = time.monotonic() + timeout_s, False
    while not holds():
        assert not over, f"not within {timeout_s:.0f} s: {what}"
        over = time.monotonic() >= deadline
        time.sleep(0.1)


def ledger_since(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What an OAP's books gained between two looks; reasons that gained nothing are left out."""
    lost = {reason: n - before["dropped"].get(reason, 0) for reason, n in after["dropped"].items()}
    return {
        "accepted": after["accepted"] - before["accepted"],
        "delivered": after["delivered"] - before["delivered"],
        "dropped": {reason: n for reason, n in lost.items() if n},
    }


class Program:
    """`skyfarer …` as a child; its standard error goes to a file beside its data."""

    def __init__(self, arguments: list[str], environ: Mapping[str, str], log: Path) -> None:
        self._arguments = arguments
        self._environ = {**os.environ, "PYTHONFAULTHANDLER": "1", **environ}
        self.log = log
        self.ready_line = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.spawn()
        self.await_ready()

    def spawn(self) -> None:
        """Returns while it still starts: for a test that kills it there."""
        with self.log.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "skyfarer.cli", *self._arguments],
                env=self._environ,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def await_ready(self) -> None:
        said, hangs = self._said_until_ready()
        self.ready_line = next((one for one in said if READY in one), "")
        if not self.ready_line:
            how = f"is not ready after {READY_TIMEOUT_S:.0f} s" if hangs else "ended, not ready"
            tail = self._last_words(hangs)
            self.kill()
            raise AssertionError(f"{self._arguments} {how}: {said} {tail}")

    def _said_until_ready(self) -> tuple[list[str], bool]:
        """Its output up to the line that says so, and whether that was waited for in vain. Java
        warns on the output of whoever started it, so that there may be lines before."""
        assert self._process is not None and self._process.stdout is not None
        output, said = self._process.stdout.fileno(), b""
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while True:
            left_s = max(deadline_s - time.monotonic(), 0.0)
            readable, _, _ = select.select([output], [], [], left_s)
            piece = os.read(output, 64 * KIB) if readable else b""
            said += piece
            whole = said.decode(errors="replace").splitlines(keepends=True)
            if not piece or any(READY in one and one.endswith("\n") for one in whole):
                return whole, not readable

    def _last_words(self, hangs: bool) -> str:
        """The last line of its log, then all that may help; of one that hangs, where it does."""
        assert self._process is not None
        said = self.log.read_text().splitlines()[-LOG_LINES:] or ["nothing in its log"]
        if hangs:
            os.kill(self._process.pid, signal.SIGABRT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STACKS_WITHIN_S)
        stacks = self.log.read_text().splitlines()[-STACK_LINES:] if hangs else said
        return "\n".join((said[-1], *stacks))

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def has_ended(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL to the whole group: program, receiver, JVM and workers at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def stop(self) -> int:
        """SIGTERM, and the exit code; AssertionError with its stacks when it goes on."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            tail = self._last_words(hangs=True)
            self.kill()
            how = f"does not end within {STOP_TIMEOUT_S:.0f} s"
            raise AssertionError(f"{self._arguments} {how}: {tail}") from None
        finally:
            if self._process.poll() is None:
                self.kill()


_TRACE = """query ($id: ID!) {
  queryTrace(traceId: $id) {
    spans {
      traceId segmentId spanId parentSpanId refs { traceId parentSegmentId parentSpanId type }
      serviceCode serviceInstanceName startTime endTime endpointName type peer component isError
      layer tags { key value } logs { time data { key value } }
    }
  }
}"""


class Oap(Program):
    """Data of ten years is kept: what tests send is of the day they were written on."""

    def __init__(self, directory: Path, **environ: str) -> None:
        self.data = directory / "oap"
        self.grpc_port, self.rest_port, self.telemetry_port = (free_port() for _ in range(3))
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(
            ["oap", "start"],
            {
                "SKYFARER_DATA_DIR": str(self.data),
                "SW_CORE_GRPC_PORT": str(self.grpc_port),
                "SW_CORE_REST_PORT": str(self.rest_port),
                "SW_TELEMETRY_PROMETHEUS_PORT": str(self.telemetry_port),
                "SW_CORE_METRICS_DATA_TTL": "3650",
                "SW_CORE_RECORD_DATA_TTL": "3650",
                "TZ": "UTC",
                **environ,
            },
            directory / "oap.log",
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"

    def graphql(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/graphql", body, headers)
        with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        data: dict[str, Any] = answer["data"]
        return data

    def trace(self, trace_id: str) -> list[dict[str, Any]]:
        """The spans of a trace, parents before children."""
        spans: list[dict[str, Any]] = self.graphql(_TRACE, id=trace_id)["queryTrace"]["spans"]
        return spans

    def ledger(self) -> dict[str, Any]:
        return self.status("ledger")

    def status(self, what: str) -> dict[str, Any]:
        with urllib.request.urlopen(
            f"{self.url}/status/{what}", timeout=ANSWER_TIMEOUT_S
        ) as response:
            found: dict[str, Any] = json.load(response)
        return found

    def metrics(self) -> str:
        url = f"http://127.0.0.1:{self.telemetry_port}/metrics"
        with urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT_S) as response:
            return str(response.read().decode())

    def await_applied(self, records: int, timeout_s: float = 900.0) -> dict[str, Any]:
        """Waits until that many records are accepted and none is queued; the ledger then."""

        def applied() -> bool:
            ledger = self.ledger()
            return bool(ledger["accepted"] >= records and ledger["queued"] == 0)

        eventually(applied, timeout_s, f"{records} records applied")
        return self.ledger()

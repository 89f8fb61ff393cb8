"""The real clients at work: small shops under agents, and OpenTelemetry's SDK."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e import environments
from skyfarer.testing.programs import eventually, free_port

HERE = Path(__file__).parent
READY_WITHIN_S = 300.0
IDS_WITHIN_S = 300.0
"""The old agent asks for ids every five seconds, and each answer may be held back."""
STOP_TIMEOUT_S = 30.0
EAGER = {
    "SW_AGENT_METER_REPORTER_PERIOD": "5",
    "SW_AGENT_COLLECTOR_GET_PROFILE_TASK_INTERVAL": "1",
}
"""The Python agent asks right away and reports soon, not after 20 s."""
METERLESS = {"SW_AGENT_METER_REPORTER_ACTIVE": "False"}


@dataclass(frozen=True)
class Shop:
    """A shop that serves until it is stopped; what it and its agent say goes to `log`."""

    service: str
    url: str
    log: Path
    process: subprocess.Popen[bytes]

    def await_ready(self) -> None:
        self.await_said("ready\n", READY_WITHIN_S)

    def await_said(self, words: str, timeout_s: float) -> None:
        def said() -> bool:
            text = self.log.read_text()
            assert self.process.poll() is None, f"{self.service} has ended:\n{text[-2000:]}"
            return words in text

        eventually(said, timeout_s, f"{self.service} says {words!r}")

    def visit(self, page: str) -> int:
        """The status it answers with."""
        try:
            with urllib.request.urlopen(self.url + page, timeout=READY_WITHIN_S) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    def sell(self, visits: Mapping[str, int]) -> None:
        """One visit at a time; the checkout fails, as it should."""
        for page, times in visits.items():
            for _ in range(times):
                assert self.visit(page) == (500 if page == "/checkout" else 200)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def python_shop(
    directory: Path,
    service: str,
    backend: str,
    protocol: str = "grpc",
    *others: str,
    meters: bool = False,
) -> Shop:
    """`others`: the address of the shop whose depot it asks."""
    command = [environments.python("agent"), HERE / "agent" / "app.py", protocol, backend, service]
    environ = EAGER if meters else EAGER | METERLESS
    return _start(directory, service, command, free_port(), environ, *others)


def node_shop(directory: Path, service: str, backend: str) -> Shop:
    command = [environments.node(), HERE / "node_agent" / "app.js", backend, service]
    path = {"NODE_PATH": str(environments.node_modules("node_agent"))}
    return _start(directory, service, command, free_port(), path)


def old_shops(directory: Path, front: str, stock: str, backend: str) -> tuple[Shop, Shop]:
    """The front asks the stock. Their agents tell of every id they get."""
    ports = {front: free_port(), stock: free_port()}
    command = [environments.old_node(), HERE / "old_node_agent" / "app.js", backend]
    path = {"NODE_PATH": str(environments.node_modules("old_node_agent")), "DEBUG": "skyapm:*"}
    shops = [
        _start(directory, service, [*command, service], port, path, str(ports[stock]))
        for service, port in ports.items()
    ]
    return shops[0], shops[1]


def _start(
    directory: Path,
    service: str,
    command: list[Any],
    port: int,
    environ: Mapping[str, str],
    *more: str,
) -> Shop:
    log = directory / f"{service}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, str(port), *more],
            env={**os.environ, **environ},
            stdout=output,
            stderr=output,
        )
    return Shop(service, f"http://127.0.0.1:{port}", log, process)


def otel(service: str, backend: str, protocol: str, *callers: str) -> list[str]:
    """Runs it to its end; the contexts of its calls. AssertionError unless all was delivered."""
    command = [environments.python("otel"), HERE / "otel" / "app.py", protocol, backend, service]
    ran = subprocess.run(
        [*command, *callers], capture_output=True, text=True, timeout=READY_WITHIN_S
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert set(said["exports"]) == {"traces", "metrics", "logs"}, said
    assert {result for results in said["exports"].values() for result in results} == {"SUCCESS"}, (
        ran.stderr
    )
    calls: list[str] = said["calls"]
    return calls

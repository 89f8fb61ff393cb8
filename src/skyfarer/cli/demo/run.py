"""Start, send, and with a time limit: wait until nothing is queued, then compare the totals."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import ConfigError
from skyfarer.cli.demo import books, verification
from skyfarer.cli.demo.children import Child
from skyfarer.cli.demo.ports import HOST, Ports, chosen
from skyfarer.cli.demo.sending import Agents
from skyfarer.telemetry.ledger import Ledger
from skyfarer.testing.traffic import DemoTraffic

DRAIN_TIMEOUT_S = 120.0
PROGRESS_INTERVAL_S = 2.0
SENT_INTERVAL_S = 10.0
DIFFERENCES_SHOWN_MAX = 20


@dataclass(frozen=True)
class DemoSettings:
    seconds: float | None = None  # None: until Ctrl-C, nothing is verified
    rate: float = 20.0
    seed: int = 1
    data_directory: Path | None = None


def run(settings: DemoSettings) -> int:
    """Blocks; the exit code of the command."""
    if settings.data_directory is not None:
        directory = settings.data_directory
        directory.mkdir(parents=True, exist_ok=True)
        if settings.seconds is not None and any(directory.iterdir()):
            raise ConfigError(f"{directory} is not empty, so its totals could not be verified")
        return asyncio.run(Demo(settings, directory, SystemClock()).run())
    directory = Path(tempfile.mkdtemp(prefix="skyfarer-demo-"))
    code = 1
    try:
        code = asyncio.run(Demo(settings, directory, SystemClock()).run())
    finally:
        if code == 0:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"data and logs are kept in {directory}")
    return code


class Demo:
    def __init__(self, settings: DemoSettings, directory: Path, clock: Clock) -> None:
        self._settings = settings
        self._directory = directory
        self._clock = clock
        self._begun_s = clock.monotonic_s()
        self._traffic = DemoTraffic(Random(settings.seed), clock)
        self._stopped = asyncio.Event()
        self._children: list[Child] = []

    async def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stopped.set)
        self._say(f"data and logs are in {self._directory}")
        with chosen(self._say) as ports:
            agents = Agents(HOST, ports.satellite_grpc, self._traffic, self._clock)
            try:
                return await self._unless_stopped(self._work(ports, agents))
            finally:
                await agents.stop(1.0)
                for child in reversed(self._children):
                    self._say(f"stopping {child.name}")
                    await child.stop()

    async def _work(self, ports: Ports, agents: Agents) -> int:
        await self._start(ports)
        self._say(f"sending {self._settings.rate:g} traces per second through the satellite")
        print(f"\n    http://{HOST}:{ports.ui}/\n", flush=True)
        await agents.start()
        await agents.send(self._settings.rate, self._settings.seconds, self._watch(agents))
        self._say(f"sent {agents.traces} traces in {agents.records} records")
        return await self._verify(ports, agents)

    async def _unless_stopped(self, work: Coroutine[None, None, int]) -> int:
        """What it returns; 0, and the work is given up, when Ctrl-C comes first."""
        working = asyncio.create_task(work)
        stopping = asyncio.create_task(self._stopped.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if working.done():
            return await working
        working.cancel()
        await asyncio.wait({working})
        # Asked to prove something and stopped before it could is no success.
        return 0 if self._settings.seconds is None else 1

    async def _start(self, ports: Ports) -> None:
        self._children = programs(self._directory, ports)
        for child in self._children:
            self._say(f"starting {child.name}")
            child.start()
        for child in self._children:
            await child.ready(self._say)
            self._say(f"{child.name} is ready")

    def _watch(self, agents: Agents) -> Callable[[], None]:
        """Notices a child that ended, and says now and then how far it is."""
        told_s = self._clock.monotonic_s()

        def watch() -> None:
            nonlocal told_s
            self._check()
            if self._clock.monotonic_s() - told_s >= SENT_INTERVAL_S:
                told_s = self._clock.monotonic_s()
                self._say(f"sent {agents.traces} traces")

        return watch

    def _check(self) -> None:
        for child in self._children:
            child.check()

    async def _verify(self, ports: Ports, agents: Agents) -> int:
        satellite, oap = await self._drained(ports, agents.records)
        rest = f"http://{HOST}:{ports.oap_rest}"
        shown = await verification.ask(f"{rest}/graphql", self._traffic.expected)
        logs = await verification.count_logs(f"{rest}/graphql", self._traffic.expected)
        wrong = list(verification.differences(shown, self._traffic.expected))
        print(f"\nsatellite  {satellite}\nOAP        {oap}\n")
        print("\n".join(verification.table(shown, self._traffic.expected)), flush=True)
        print(f"\n{logs} lines of log are shown, {agents.logs} were sent")
        for line in wrong[:DIFFERENCES_SHOWN_MAX]:
            print(f"differs: {line}")
        faults = list(_faults(agents.records, satellite, oap, len(wrong)))
        if logs != agents.logs:
            faults.append("lines of log are missing, or shown twice")
        print("\n" + ("; ".join(faults) or "everything that was sent is shown, once"), flush=True)
        return 1 if faults else 0

    async def _drained(self, ports: Ports, records: int) -> tuple[Ledger, Ledger]:
        """Both ledgers when nothing is queued any more, or when that takes too long."""
        deadline_s = self._clock.monotonic_s() + DRAIN_TIMEOUT_S
        while True:
            self._check()
            satellite = await books.of_satellite(
                f"http://{HOST}:{ports.satellite_telemetry}/metrics"
            )
            oap = await books.of_oap(f"http://{HOST}:{ports.oap_rest}/status/ledger")
            # In this order: what left the satellite before is in the OAP's books by now.
            if not satellite.queued and not oap.queued and oap.accepted >= satellite.delivered:
                return satellite, oap
            if self._clock.monotonic_s() > deadline_s:
                return satellite, oap
            self._say(f"waiting: satellite {satellite.queued} queued, OAP {oap.queued} queued")
            await asyncio.sleep(PROGRESS_INTERVAL_S)

    def _say(self, what: str) -> None:
        print(f"[{self._clock.monotonic_s() - self._begun_s:6.1f} s] {what}", flush=True)


def _faults(sent: int, satellite: Ledger, oap: Ledger, wrong: int) -> Iterator[str]:
    if not satellite.balanced:
        yield "the satellite's ledger does not balance"
    if not oap.balanced:
        yield "the OAP's ledger does not balance"
    if satellite.queued or oap.queued:
        yield f"{satellite.queued + oap.queued} records are still queued"
    if satellite.delivered != sent:
        yield f"{sent} records were sent and {satellite.delivered} delivered"
    if wrong:
        yield f"{wrong} minutes are shown otherwise than they were sent"


def programs(directory: Path, ports: Ports) -> list[Child]:
    """The OAP, the satellite and the page, wired to each other on this machine."""
    rest = f"http://{HOST}:{ports.oap_rest}"
    oap = Child(
        "the OAP",
        ["oap", "start"],
        {
            "SW_CORE_GRPC_HOST": HOST,
            "SW_CORE_GRPC_PORT": str(ports.oap_grpc),
            "SW_CORE_REST_HOST": HOST,
            "SW_CORE_REST_PORT": str(ports.oap_rest),
            "SW_TELEMETRY_PROMETHEUS_HOST": HOST,
            "SW_TELEMETRY_PROMETHEUS_PORT": str(ports.oap_telemetry),
            "SKYFARER_DATA_DIR": str(directory / "oap"),
        },
        directory / "oap.log",
        f"{rest}/healthcheck",
    )
    satellite = Child(
        "the satellite",
        ["satellite", "start"],
        {
            "SATELLITE_GRPC_ADDRESS": f"{HOST}:{ports.satellite_grpc}",
            "SATELLITE_GRPC_CLIENT": f"{HOST}:{ports.oap_grpc}",
            "SATELLITE_TELEMETRY_PROMETHEUS_ADDRESS": f"{HOST}:{ports.satellite_telemetry}",
            "SKYFARER_SATELLITE_DATA_DIR": str(directory / "satellite"),
            # The demo's agents need none of these, and somebody else may have their ports.
            "SKYFARER_SATELLITE_HTTP_ADDRESS": "",
            "SKYFARER_SATELLITE_OTLP_GRPC_ADDRESS": "",
            "SKYFARER_SATELLITE_OTLP_HTTP_ADDRESS": "",
        },
        directory / "satellite.log",
        f"http://{HOST}:{ports.satellite_telemetry}/healthcheck",
    )
    page = Child(
        "the web page",
        ["ui", "start", "--oap", rest, "--host", HOST, "--port", str(ports.ui)],
        {},
        directory / "ui.log",
        f"http://{HOST}:{ports.ui}/",
    )
    return [oap, satellite, page]

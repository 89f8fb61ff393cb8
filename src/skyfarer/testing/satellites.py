"""The real satellite as a process: loaded, looked at, killed and started again by tests."""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path
from types import TracebackType

from skyfarer.base.units import KIB
from skyfarer.telemetry.ledger import Ledger
from skyfarer.testing.programs import SATELLITE_ANYWHERE, Program, eventually, free_port

WAIT_S = 120.0
_METRICS = re.compile(r"metrics at http://\S+:(\d+)/")
_HTTP = re.compile(r"agents at \S+:(\d+) \(HTTP\)")
_DROPPED = re.compile(r'queue_dropped_total\{reason="([^"]+)"\}')


class SatelliteProgram(Program):
    """Agents find it at one port through all its lives. Leaving the `with` block kills it."""

    def __init__(
        self, directory: Path, upstream: str, config: Path | None = None, **environ: str
    ) -> None:
        self.data = directory / "satellite"
        self.grpc_port = free_port()
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(
            ["satellite", "start", *(["--config", str(config)] if config is not None else [])],
            {
                **SATELLITE_ANYWHERE,
                "SATELLITE_GRPC_ADDRESS": f"127.0.0.1:{self.grpc_port}",
                "SATELLITE_GRPC_CLIENT": upstream,
                "SKYFARER_SATELLITE_DATA_DIR": str(self.data),
                **environ,
            },
            directory / "satellite.log",
        )

    def __enter__(self) -> SatelliteProgram:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def metrics_url(self) -> str:
        found = _METRICS.search(self.ready_line)
        assert found, f"no address of metrics in {self.ready_line!r}"
        return f"http://127.0.0.1:{found[1]}/metrics"

    @property
    def http_url(self) -> str:
        """Of the protocol of SkyWalking's agents as JSON."""
        found = _HTTP.search(self.ready_line)
        assert found, f"no address of HTTP in {self.ready_line!r}"
        return f"http://127.0.0.1:{found[1]}"

    def metrics(self) -> dict[str, float]:
        """Series → value."""
        with urllib.request.urlopen(self.metrics_url, timeout=WAIT_S) as response:
            lines = response.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {series: float(value) for series, value in pairs}

    def metric(self, name: str) -> float:
        """The sum of all its series; 0 when there is none."""
        return sum(
            value
            for series, value in self.metrics().items()
            if series == name or series.startswith(name + "{")
        )

    def ledger(self) -> Ledger:
        """AssertionError unless it is balanced: it has to be, at whatever moment it is read."""
        values = self.metrics()
        dropped = {
            found[1]: int(value)
            for series, value in values.items()
            if value and (found := _DROPPED.match(series))
        }
        ledger = Ledger(
            int(values["queue_accepted_total"]),
            int(values["queue_delivered_total"]),
            int(values["queue_queued_records"]),
            dropped,
        )
        assert ledger.balanced, ledger
        return ledger

    def await_empty(self, timeout_s: float = WAIT_S) -> Ledger:
        eventually(lambda: not self.ledger().queued, timeout_s, "an empty queue")
        return self.ledger()

    def memory_bytes(self, name: str = "VmRSS") -> int:
        """`VmRSS` or, the highest it ever was, `VmHWM`."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * KIB for line in lines if line.startswith(name))

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

"""A real Prometheus, and promtool, from Debian's prometheus."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from third_parties.servers import Server

TIMEOUT_S = 120.0
_WARNING = re.compile(r"\blevel=(warn|error)\b")


class PrometheusServer(Server):
    """Scrapes each of `targets`, by the name of its job, every second."""

    def __init__(self, directory: Path, targets: Mapping[str, str]) -> None:
        super().__init__(directory, "prometheus")
        self._targets = targets

    def command(self) -> Sequence[str]:
        found = shutil.which("prometheus")
        assert found, "the tests need Debian's prometheus"
        config = self.directory / "prometheus.yml"
        jobs = "".join(_JOB.format(job=job, address=one) for job, one in self._targets.items())
        config.write_text(f"global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}")
        return [
            *(found, "--config.file", str(config), "--web.listen-address", self.address),
            *("--storage.tsdb.path", str(self.data)),
        ]

    def is_ready(self) -> bool:
        with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=TIMEOUT_S) as found:
            return bool(found.status == 200)

    def targets(self) -> dict[str, dict[str, Any]]:
        """What it knows of each, by the name of its job."""
        active = self._asked("targets")["activeTargets"]
        return {one["labels"]["job"]: one for one in active}

    def value(self, query: str) -> dict[str, float]:
        """Of each job, at this moment."""
        found = self._asked("query", query=query)["result"]
        return {one["metric"]["job"]: float(one["value"][1]) for one in found}

    def warnings(self) -> list[str]:
        return [line for line in self._log.read_text().splitlines() if _WARNING.search(line)]

    def _asked(self, path: str, **parameters: str) -> Any:
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
            return json.load(response)["data"]


_JOB = "  - {{job_name: {job}, static_configs: [{{targets: ['{address}']}}]}}\n"


def complaints(metrics: str) -> list[str]:
    """What `promtool check metrics` says of an exposition, line by line."""
    command = ["promtool", "check", "metrics"]
    ran = subprocess.run(command, input=metrics, capture_output=True, text=True, timeout=TIMEOUT_S)
    said = (ran.stdout + ran.stderr).splitlines()
    assert bool(said) == bool(ran.returncode), (ran.returncode, said)
    return said


def queried(server: str, command: str, *arguments: str) -> list[str]:
    """What `promtool query` prints; AssertionError where it fails."""
    options = [one for one in arguments if one.startswith("--")]
    rest = [one for one in arguments if not one.startswith("--")]
    line = ["promtool", "query", command, *options, server, *rest]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()

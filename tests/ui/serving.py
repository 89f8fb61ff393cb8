"""The pages in a process of their own, and the list of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from skyfarer.testing.programs import free_port

START_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 60.0
_LIST = """
import json
from nicegui import Client
from skyfarer.ui import create
create("http://127.0.0.1:1")
print(json.dumps(sorted(Client.page_routes.values())))
"""


def registered() -> list[str]:
    """The path of every page that the application has."""
    ran = subprocess.run(
        [sys.executable, "-c", _LIST], env=_environ(), stdout=subprocess.PIPE, check=True
    )
    paths: list[str] = json.loads(ran.stdout)
    return paths


@contextmanager
def pages_of(oap_url: str) -> Iterator[str]:
    """The address of `/`, for the OAP at that address."""
    port = free_port()
    command = f"from skyfarer.ui import run; run({oap_url!r}, '127.0.0.1', {port})"
    process = subprocess.Popen([sys.executable, "-c", command], env=_environ())
    url = f"http://127.0.0.1:{port}/"
    try:
        _wait_until_served(url, process)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()


def _environ() -> dict[str, str]:
    """NiceGUI behaves differently when it believes it runs inside a test; this is the real
    thing."""
    return {name: value for name, value in os.environ.items() if "PYTEST" not in name}


def _wait_until_served(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        assert process.poll() is None, "the page's process ended"
        try:
            httpx.get(url, trust_env=False, timeout=ANSWER_TIMEOUT_S)
            return
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError(f"{url} was not served within {START_TIMEOUT_S:g} s")

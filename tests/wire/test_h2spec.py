"""HTTP/2 as its specification has it, by h2spec, the examiner that other servers use."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

H2SPEC = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"
CACHE = Path(__file__).parents[2] / ".cache" / "h2spec-2.2.1"
BUILD_TIMEOUT_S = 300.0
RUN_TIMEOUT_S = 300.0
WAIT_S = "5"  # for what a server must answer; h2spec's own two seconds are few on a busy machine


@pytest.fixture(scope="session")
def h2spec() -> Path:
    program = CACHE / "h2spec"
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            pytest.skip("h2spec is built with Go, which is not installed")
        CACHE.mkdir(parents=True, exist_ok=True)
        build = {**os.environ, "GOBIN": str(CACHE), "GOFLAGS": "-mod=mod"}
        subprocess.run([go, "install", H2SPEC], env=build, check=True, timeout=BUILD_TIMEOUT_S)
    return program


@pytest.mark.timeout(BUILD_TIMEOUT_S + RUN_TIMEOUT_S)
def test_no_case_of_h2spec_fails_and_none_is_left_out(
    serve: Callable[..., Any], h2spec: Path
) -> None:
    command = [h2spec, "-h", "127.0.0.1", "-p", str(serve().server.port), "-o", WAIT_S]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
    tail = ended.stdout[ended.stdout.rfind("Failures:") :]
    assert ended.returncode == 0, tail
    counted = ended.stdout.splitlines()[-1]
    assert counted.endswith("0 skipped, 0 failed"), counted
    assert int(counted.split()[0]) > 100, counted

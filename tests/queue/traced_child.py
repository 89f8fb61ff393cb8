"""A life in a forked child, with strace attached before it begins: the n-th call of a name is the
n-th of that life, and strace makes it fail, wait or kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

Tell = Callable[[str, int], None]
LIVED = signal.SIGUSR1


def run_traced(
    life: Callable[[Tell], None], *options: str, log: Path = Path("/dev/null")
) -> tuple[int, list[tuple[str, int]]]:
    """The status the child ended with, LIVED when its life was not cut short, and all it told."""
    (go_here, go_there), (here, there) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.read(go_here, 1)
        try:
            life(lambda name, value: _tell(there, name, value))
            os.kill(os.getpid(), LIVED)
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(there)
    os.close(go_here)
    tracer = _attached(child, *options, "-o", str(log))
    os.write(go_there, b"!")
    os.close(go_there)
    with os.fdopen(here) as pipe:
        told = [(name, value) for name, value in map(json.loads, pipe)]
    _, status = os.waitpid(child, 0)
    tracer.communicate()
    return status, told


def _tell(pipe: int, name: str, value: int) -> None:
    os.write(pipe, f'["{name}", {value}]\n'.encode())


def _attached(child: int, *options: str) -> subprocess.Popen[str]:
    command = ["strace", "-p", str(child), *options]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    greeting = tracer.stderr.readline()
    assert "attached" in greeting, greeting
    return tracer

"""Dashboards that are looked at all at once: a process of its own, a thread and connection each.

    python query_crowd.py PORT DASHBOARDS SECONDS < questions

`questions` is JSON, a list of requests as text. The number of answers is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from query_client import Client

WAIT_S: Final = 600.0


def in_threads(number: int, seconds: float, work: Callable[[int, int], object]) -> int:
    """How often `work` was done, all threads taken together; it gets the thread and the turn."""
    deadline_s = time.monotonic() + seconds

    def run(thread: int) -> int:
        turn = 0
        while time.monotonic() < deadline_s:
            work(thread, turn)
            turn += 1
        return turn

    with ThreadPoolExecutor(number) as threads:
        return sum(threads.map(run, range(number), timeout=WAIT_S))


def asked(port: int, dashboards: int, seconds: float, questions: Sequence[bytes]) -> int:
    """From another process, so that asking costs the answering one nothing."""
    command = [sys.executable, __file__, str(port), str(dashboards), str(seconds)]
    texts = json.dumps([one.decode() for one in questions])
    ran = subprocess.run(command, input=texts, stdout=subprocess.PIPE, text=True, timeout=WAIT_S)
    assert ran.returncode == 0, "the crowd has failed"
    return int(ran.stdout)


def main() -> None:
    port, dashboards, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    questions = [one.encode() for one in json.load(sys.stdin)]
    clients = [Client(port) for _ in range(dashboards)]
    print(
        in_threads(
            dashboards,
            seconds,
            lambda thread, turn: clients[thread].ask(
                questions[(thread + turn * dashboards) % len(questions)]
            ),
        )
    )


if __name__ == "__main__":
    main()

"""How soon another process wakes after an append, and what waiting costs it meanwhile."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure
from skyfarer.base.units import MIB
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

APPENDS = 1_000
PAUSE_S = 0.003
IDLE_S = 5.0

WAITER = """
import os, sys, time
from pathlib import Path
from skyfarer.queue.reader import Reader
reader = Reader(Path(sys.argv[1]))
reader.start()
reader.wait(0, 0.1)
before = os.times()
print("idle", flush=True)
reader.wait(0, 60.0)
after = os.times()
print((after.user + after.system) - (before.user + before.system), flush=True)
seen = reader.writing()
while seen < int(sys.argv[2]):
    reader.wait(seen, 60.0)
    now = time.monotonic_ns()
    for run in reader.runs(seen, reader.writing()):
        for payload in run.payloads():
            print(now - int(bytes(payload)), flush=True)
        seen = run.end
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        queue = Path(scratch) / "queue"
        writer = Writer(QueueSettings(queue, MIB, 8 * MIB, record_bytes_max=64 * 1024))
        writer.start()
        command = [sys.executable, "-c", WAITER, str(queue), str(APPENDS + 1)]
        waiter = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == "idle\n"
        time.sleep(IDLE_S)
        writer.append(1, [b"0"])
        idle_cpu_s = float(waiter.stdout.readline())
        time.sleep(0.1)
        for _ in range(APPENDS):
            writer.append(1, [str(time.monotonic_ns()).encode()])
            time.sleep(PAUSE_S)
        late_ms = sorted(int(line) / 1e6 for line in waiter.stdout)
        waiter.wait()
        writer.stop(0)
    figure("queue_wake_up_p50", statistics.median(late_ms), "ms")
    figure("queue_wake_up_p99", late_ms[int(len(late_ms) * 0.99)], "ms", at_most=5)
    figure("queue_idle_cpu", 100 * idle_cpu_s / IDLE_S, "% of a core", at_most=0.5)


if __name__ == "__main__":
    main()

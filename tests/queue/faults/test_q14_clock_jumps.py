"""Q14: the wall clock jumps. Order, place and loss follow from numbers; no date is ever asked for.

Two proofs: the source of the room names no wall clock and no date of a file; and a life in which
faketime moves the clock by more than a year, back again, and over the end of summer time is the
life it would have been.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import skyfarer.queue
from third_parties import faketime

ROOM = Path(skyfarer.queue.__file__).parent
FORBIDDEN = {
    "time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.strftime",
    "time.CLOCK_REALTIME", "datetime", "calendar", "utime", "futimens",
    "st_mtime", "st_ctime", "st_atime", "st_mtime_ns", "st_ctime_ns", "st_atime_ns",
}  # fmt: skip
JUMPS = [
    "+400d",
    "-1d",
    "+2d",
    "@2026-10-25 02:59:59",
    "@1971-01-01 00:00:00",
    "@2038-01-19 03:14:06",
]

LIFE = """
import json, sys, time
from pathlib import Path
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

directory, clock, jumps = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
writer = Writer(QueueSettings(directory, 16 * KIB, 64 * KIB, 4 * KIB))
seen, delivered = [], []
for number, jump in enumerate(jumps):
    clock.write_text(jump)
    writer.start()
    seen.append(time.time())
    reader, consumer = Reader(directory), Consumer(directory, "main")
    reader.start()
    consumer.start()
    for n in range(40):
        writer.append(1, [b"%d.%d" % (number, n) * 60])
    if number % 2:
        for run in reader.runs(consumer.committed(), reader.writing()):
            delivered += [bytes(payload[:6]).decode() for payload in run.payloads()]
            consumer.commit(run.end, run.dropped)
    consumer.stop()
    reader.stop()
    if number % 3:
        writer.stop(0.0)
print(json.dumps({"seen": seen, "delivered": delivered, "writing": writer.writing}))
"""

# Each jump comes while a reader waits and while a full queue blocks its writer. One wait of each
# kind is ended by what it waits for, one by its timeout, which must not come sooner than it should.
# The sleep of a blocked writer is replaced: Python's is by a call that faketime refuses.
WAITERS = """
import json, select, sys, threading, time
from pathlib import Path
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.errors import QueueFull
from skyfarer.queue.reader import Reader
from skyfarer.queue.ring import Patience
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

SHORT_S, LONG_S = 0.3, 60.0
directory, clock, jumps = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
bounds = (directory, 16 * KIB, 64 * KIB, 4 * KIB, "block")

def sleep(seconds):
    select.select([], [], [], seconds)

def patient(timeout_s):
    return Writer(QueueSettings(*bounds, block_timeout_s=timeout_s), None, Patience(sleep=sleep))

parts = [patient(LONG_S), Consumer(directory, "main"), Reader(directory, look_again_s=LONG_S)]
for part in parts:
    part.start()
writer, consumer, reader = parts
seen, woken, let_in, soonest_s = [], 0, 0, LONG_S

def beside(work, act):
    global soonest_s
    began, done = time.monotonic(), []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    sleep(SHORT_S / 3)
    clock.write_text(jump)
    seen.append(time.time())
    act()
    thread.join()
    return done[0], time.monotonic() - began

def fill():
    while writer.writing - consumer.committed() < 8:
        writer.append(1, [bytes(4000)])

for jump in jumps:
    ended, took_s = beside(lambda: reader.wait(reader.writing(), SHORT_S), lambda: None)
    assert not ended
    soonest_s = min(soonest_s, took_s)
    consumer.commit(writer.writing)
    beyond = writer.writing
    woken += beside(lambda: reader.wait(beyond, LONG_S), lambda: writer.append(1, [b"a"]))[0]
    consumer.commit(writer.writing)
    writer.stop(0.0)
    writer = patient(LONG_S)
    writer.start()
    fill()
    commit = lambda: consumer.commit(writer.writing)
    let_in += beside(lambda: writer.append(1, [bytes(4000)]), commit)[0] > 0
    writer.stop(0.0)
    writer = patient(SHORT_S)
    writer.start()
    fill()
    def refused():
        try:
            writer.append(1, [bytes(4000)])
        except QueueFull:
            return True
    ended, took_s = beside(refused, lambda: None)
    assert ended
    soonest_s = min(soonest_s, took_s)
    consumer.commit(writer.writing)
print(json.dumps({"seen": seen, "woken": woken, "let_in": let_in, "soonest_s": soonest_s}))
"""


def names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr
            yield ast.unparse(node)


def test_q14_the_room_names_no_wall_clock_and_no_date_of_a_file():
    sources = sorted(ROOM.glob("**/*.py"))
    found = {
        f"{path.name}: {name}"
        for path in sources
        for name in names_in(ast.parse(path.read_text()))
        if name in FORBIDDEN
    }
    assert len(sources) > 15
    assert found == set()


def lived(
    directory: Path, zone: str, jumps: list[str], fake: bool, life: str = LIFE
) -> dict[str, list[float]]:
    clock = directory / "clock"
    clock.write_text(jumps[0])
    environment = os.environ | {"TZ": zone}
    if fake:
        environment |= faketime.changes(clock)
    command = [sys.executable, "-c", life, str(directory / "queue"), str(clock), *jumps]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, list[float]] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_q14_a_clock_that_jumps_during_a_life_changes_nothing(tmp_path, zone):
    places = [tmp_path / "steady", tmp_path / "jumping"]
    for place in places:
        place.mkdir()
    steady, jumping = (lived(place, zone, JUMPS, place.name == "jumping") for place in places)
    jumps = [later - sooner for sooner, later in pairwise(jumping["seen"])]
    assert all(abs(jump) > 80_000 for jump in jumps)
    assert sum(jump < 0 for jump in jumps) >= 2
    assert jumping["delivered"] == steady["delivered"]
    assert jumping["writing"] == steady["writing"] == 40 * len(JUMPS)
    assert len(steady["delivered"]) == 40 * len(JUMPS)


def test_q14_a_clock_that_jumps_ends_no_wait_too_soon_and_keeps_none_from_ending(tmp_path):
    found = lived(tmp_path, "UTC", JUMPS, fake=True, life=WAITERS)
    jumps = [abs(later - sooner) for sooner, later in pairwise(found["seen"])]
    assert sum(jump > 80_000 for jump in jumps) >= len(JUMPS) - 1
    assert found["woken"] == found["let_in"] == len(JUMPS)
    assert found["soonest_s"] >= 0.3

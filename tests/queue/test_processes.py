"""One writer per directory, whatever processes come and go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyfarer.queue.errors import QueueLocked

OPENER = """
import sys
from pathlib import Path
from skyfarer.base.units import KIB
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
writer = Writer(QueueSettings(Path(sys.argv[1]), 16 * KIB, 64 * KIB, 4 * KIB))
writer.start()
print("open", flush=True)
sys.stdin.read()
"""


def open_elsewhere(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OPENER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_second_writer_is_refused_with_the_owners_process_id_and_touches_nothing(bench):
    owner = open_elsewhere(bench.directory)
    try:
        assert owner.stdout is not None and owner.stdout.readline() == "open\n"
        before = contents(bench.directory)
        with pytest.raises(QueueLocked, match=f"in process {owner.pid};"):
            bench.writer()
        assert contents(bench.directory) == before
    finally:
        owner.communicate()
    bench.writer()


def test_a_second_writer_in_the_same_process_is_refused(bench):
    bench.writer()
    with pytest.raises(QueueLocked, match=f"in process {os.getpid()};"):
        bench.writer()


def test_a_killed_owner_leaves_no_lock_behind(bench):
    owner = open_elsewhere(bench.directory)
    assert owner.stdout is not None and owner.stdout.readline() == "open\n"
    owner.kill()
    owner.communicate()
    assert bench.writer().writing == 0


def test_the_room_costs_a_satellite_few_modules(bench):
    """The checksum package would bring a command line, csv and the e-mail parser along."""
    code = (
        "import sys, skyfarer.queue.writer, skyfarer.queue.reader, skyfarer.queue.consumer\n"
        "print(*sorted({'csv', 'email', 'argparse', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""

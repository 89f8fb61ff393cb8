"""Q11: another program cuts a file of the queue short while this one has it mapped.

A page behind the new end is gone, and touching it through a map ends the process with SIGBUS. So a
reader looks at the size whenever it comes to a segment, and lives; a run already in its hands is a
limit that the format document names. Whether a process lived or died of it, the next start must
deliver every record of the other files and use no number twice. A writer must not acknowledge a
record in such a file that nobody will find again.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.queue.layout import PAGE_BYTES

PAYLOADS = [b"%d" % n * 3000 for n in range(5)]
PER_SEGMENT = 2
INDEX_END = 8192
SIZES = [0, 4096, 6000, INDEX_END, 10000]


def cut(path, size: int) -> None:
    """By another process, after a look that this one really has the file mapped."""
    mapped = Path("/proc/self/maps").read_text().splitlines()
    assert any(line.endswith(str(path)) for line in mapped)
    subprocess.run(["truncate", "-s", str(size), path], check=True)


def end_of(act) -> int:
    """The signal a child ends with that does `act`: SIGUSR1 when it lived through it."""
    child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()
            act()
            os.kill(os.getpid(), signal.SIGUSR1)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (signal.SIGUSR1, signal.SIGBUS), status
    return status


def delivered(bench) -> dict[int, bytes]:
    return {
        sequence: bytes(payload)
        for run in bench.runs()
        for sequence, payload in zip(run.sequences(), run.payloads(), strict=True)
    }


def check_next_start(bench, lost: list[int], quarantined: int) -> None:
    """`lost` are the numbers of the file that was cut; whatever was appended later has others."""
    seen = []
    for _ in range(2):
        writer = bench.writer()
        seen.append(delivered(bench))
        assert len(seen[-1]) + len(bench.damaged()) == writer.writing >= len(PAYLOADS)
        bench.close()
    assert seen[0] == seen[1]
    whole = {n: payload for n, payload in enumerate(PAYLOADS) if n not in lost}
    assert {n: payload for n, payload in seen[0].items() if n < len(PAYLOADS)} == whole
    assert len(list(bench.directory.glob("*.seg.corrupt"))) == quarantined
    writer = bench.writer()
    assert writer.append(1, [b"next"]) == writer.writing - 1 >= len(PAYLOADS)
    assert bench.records()[-1] == b"next"


@pytest.mark.parametrize("size", SIZES)
def test_q11_a_reader_that_comes_to_a_cut_segment_counts_its_records_and_goes_on(bench, size):
    """The size is looked at before a file is mapped; the writer still has it mapped."""

    def act() -> None:
        bench.writer().append(1, PAYLOADS)
        cut(bench.segment_paths()[-1], size)
        runs = bench.runs()
        assert [sequence for run in runs for sequence in run.damaged] == [4]
        assert [bytes(p) for run in runs for p in run.payloads()] == PAYLOADS[:4]

    assert end_of(act) == signal.SIGUSR1
    check_next_start(bench, lost=[4], quarantined=size < INDEX_END)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("held", [True, False], ids=["held run", "read again"])
def test_q11_a_segment_cut_under_a_reader_costs_at_most_the_process(bench, size, held):
    def act() -> None:
        bench.writer().append(1, PAYLOADS)
        reader = bench.reader()
        [run] = reader.runs(0, PER_SEGMENT)
        cut(bench.segment_paths()[0], size)
        if not held:
            [run] = reader.runs(0, PER_SEGMENT)
        b"".join(run.payloads())

    assert end_of(act) == signal.SIGUSR1 or held
    check_next_start(bench, lost=[0, 1], quarantined=size < INDEX_END)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("batch", [1, 2])
def test_q11_a_writer_acknowledges_nothing_in_a_cut_segment_that_would_be_lost(bench, size, batch):
    """It refuses once, and what is appended again goes to another segment."""
    after = [b"after the cut"] * batch

    def act() -> None:
        writer = bench.writer()
        writer.append(1, PAYLOADS)
        cut(bench.segment_paths()[-1], size)
        with suppress(RetryableError):
            writer.append(1, after)
        entry_is_gone = size <= PAGE_BYTES
        assert (writer.writing == len(PAYLOADS)) == entry_is_gone
        if entry_is_gone:
            writer.append(1, after)

    assert end_of(act) == signal.SIGUSR1
    check_next_start(bench, lost=[4], quarantined=size == 0)
    assert [payload for _, payload in sorted(delivered(bench).items())][4:-1] == after


@pytest.mark.parametrize("touch", ["append", "read"])
def test_q11_a_state_page_cut_away_costs_no_record(bench, touch):
    """The segments say it all: the page is filled in again."""

    def act() -> None:
        writer = bench.writer()
        writer.append(1, PAYLOADS)
        reader = bench.reader()
        cut(bench.directory / "state", 0)
        _ = writer.append(1, [b"after the cut"]) if touch == "append" else reader.writing()

    end_of(act)
    check_next_start(bench, lost=[], quarantined=0)


def test_q11_a_consumer_file_cut_away_costs_a_consumer_at_most_its_place(bench):
    writer, consumer = bench.writer(), bench.consumer()
    writer.append(1, PAYLOADS)
    consumer.commit(2)
    subprocess.run(["truncate", "-s", "0", bench.directory / "consumer-main"], check=True)
    consumer.commit(3)
    consumer.stop()
    assert bench.consumer().committed() in (0, 3)
    assert bench.records() == PAYLOADS

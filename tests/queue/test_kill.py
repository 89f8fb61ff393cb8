"""SIGKILL between any two lines, in the middle of any write, and at any moment.

What must hold afterwards: every append that returned is there, byte for byte, once and in order;
what is there beyond them is the beginning of the one append that was cut off; the commit that
returned holds; a second recovery finds nothing to do; and the queue goes on.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

import skyfarer.queue
from skyfarer.queue.errors import QueueFull
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, decode_segment_header
from skyfarer.queue.meta import read_meta
from skyfarer.testing.small_process import called_in_small_process

from .lifetime import EVERYTHING, check_survival, kill_between_lines, life, payloads

ROOM = str(Path(skyfarer.queue.__file__).parent)
POLICIES = pytest.mark.parametrize("policy", ["reject", "drop_oldest"])


def tell(pipe: int, *fact: object) -> None:
    os.write(pipe, json.dumps(fact).encode() + b"\n")


def killed(bench, disk, policy: str) -> tuple[bool, int, int]:
    """Runs the life in a child that `disk` kills; what it reported before it died."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            life(bench, disk, policy, partial(tell, there))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(there)
    with os.fdopen(here) as pipe:
        facts = dict(json.loads(line) for line in pipe)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status == 0, facts.get("accepted", 0), facts.get("committed", 0)


def tracing(at_line: Callable[[str], None]) -> Callable[[], None]:
    """Calls back before each line of the room."""

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(ROOM):
            return None
        if event == "line":
            at_line(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return trace

    return lambda: sys.settrace(trace)


@POLICIES
def test_a_kill_at_every_step_from_one_line_to_the_next_loses_nothing(memory_place, policy):
    assert called_in_small_process(kill_between_lines, str(memory_place), policy) > 600


def kill_inside_call(target: int, done_bytes: int) -> Callable[[int, str], int | None]:
    """Before the call for 0; else after it wrote that many bytes, if it is a write so long."""

    def trouble(call: int, name: str) -> int | None:
        if call > target or (call == target and not done_bytes):
            os.kill(os.getpid(), signal.SIGKILL)
        return done_bytes if call == target else None

    return trouble


@POLICIES
@pytest.mark.parametrize("done_bytes", [0, 1, 700, 4500])
def test_a_kill_before_inside_or_after_any_write_loses_nothing(
    memory_bench, troubled_disk, policy, done_bytes
):
    healthy = troubled_disk(lambda call, name: None)
    bench = memory_bench("whole")
    life(bench, healthy, policy, lambda *_: None)
    bench.close()
    for call in range(1, healthy.calls + 1):
        bench = memory_bench("queue")
        disk = troubled_disk(kill_inside_call(call, done_bytes))
        finished, accepted, committed = killed(bench, disk, policy)
        assert not finished or call == healthy.calls
        check_survival(bench, policy, accepted, committed)
        shutil.rmtree(bench.directory)


def interrupt_at_line(target: int) -> Callable[[], None]:
    left = target

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    return tracing(count)


@POLICIES
def test_an_append_interrupted_at_any_line_leaves_a_queue_that_goes_on(memory_bench, policy):
    """What raises is a signal handler of ours or of the program around us."""
    line, interrupted = 0, True
    while interrupted:
        line += 1
        bench = memory_bench("queue")
        writer = bench.writer(when_full=policy)
        writer.append(1, [b"before"])
        expected = [b"before"]
        interrupt_at_line(line)()
        try:
            writer.append(1, payloads(1))
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        expected += payloads(1)[: writer.writing - 1]
        for number in (0, 2):
            assert writer.append(1, payloads(number)) == len(expected)
            expected += payloads(number)
        for _ in range(2):
            assert bench.records() == expected
            bench.close()
            bench.writer(when_full=policy)
        bench.close()
        shutil.rmtree(bench.directory)
    assert line > 100


def number_of(segment: Path) -> int:
    page = segment.read_bytes()[:PAGE_BYTES]
    header = decode_segment_header(page, read_meta(segment.parent).queue_id)
    assert header is not None
    return header.number


def test_a_kill_during_recovery_changes_nothing_for_the_next(memory_bench, troubled_disk):
    """A torn tail, a damaged file and a leftover, so that recovery has everything to do."""
    wreck = memory_bench("wreck")
    life(wreck, None, "reject", lambda *_: None)
    wreck.close()
    _, second, *_, last = sorted(wreck.segment_paths(), key=number_of)
    with last.open("r+b") as file:
        file.seek(PAGE_BYTES + 200 * SLOT_BYTES)
        file.write(b"torn" * 100)
    second.write_bytes(b"garbage")
    (wreck.directory / "00009.seg.new").write_bytes(b"leftover")
    outcomes = []
    for call in range(1, 10):
        bench = memory_bench("queue")
        shutil.copytree(wreck.directory, bench.directory)
        child = os.fork()
        if child == 0:
            try:
                bench.writer(troubled_disk(kill_inside_call(call, 700)))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        writer = bench.writer()
        outcomes.append((writer.writing, writer.oldest, bench.records(writer.oldest)))
        bench.close()
        shutil.rmtree(bench.directory)
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert outcomes[0][0] == len(EVERYTHING)


def body(sequence: int) -> bytes:
    """What record `sequence` must hold: its length and its bytes follow from its number."""
    return random.Random(sequence).randbytes(sequence * 7919 % 2048)


def append_for_ever(bench, pipe: int, chance: random.Random) -> None:
    """Reports after each append that returned."""
    writer = bench.writer()
    while True:
        batch = range(writer.writing, writer.writing + chance.randint(1, 8))
        writer.append(1, [body(sequence) for sequence in batch])
        os.write(pipe, b"%d\n" % writer.writing)


def acknowledged_before_a_kill(bench, chance: random.Random) -> int:
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            append_for_ever(bench, there, chance)
        except QueueFull:
            os.close(there)
            signal.pause()
        finally:
            os._exit(1)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        patience = chance.randint(1, 10)
        reports = list(islice(pipe, patience))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return max(map(int, [*reports, *pipe]))


def test_a_writer_killed_at_random_moments_keeps_what_it_acknowledged(memory_bench):
    """The same directory through all the deaths, drained in between."""
    chance = random.Random(20261115)
    bench = memory_bench("queue")
    for _ in range(100):
        acknowledged = acknowledged_before_a_kill(bench, chance)
        writer, consumer, reader = bench.writer(), bench.consumer(), bench.reader()
        assert acknowledged <= writer.writing <= acknowledged + 8
        for run in reader.runs(consumer.committed(), reader.writing()):
            assert run.first == consumer.committed()
            assert not run.damaged
            for sequence, payload in zip(run.sequences(), run.payloads(), strict=True):
                assert payload == body(sequence)
            consumer.commit(run.end)
        assert consumer.committed() == writer.writing
        bench.close()

"""when_full = "block": a full queue holds the caller back, but not for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.queue.errors import QueueFull, RecordTooLarge
from skyfarer.queue.ring import BLOCK_RETRY_S, Patience
from skyfarer.queue.settings import BLOCK_TIMEOUT_S_MAX
from skyfarer.queue.writer import Writer


class Sleeper:
    """Time passes only while somebody sleeps; `then` happens meanwhile."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []
        self.then: Callable[[], None] = lambda: None

    def now_ms(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return sum(self.slept_s)

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.then()


@pytest.fixture
def sleeper():
    return Sleeper()


@pytest.fixture
def writer(bench, sleeper):
    """Full: eight records of 4000 bytes, two to a segment of which there are four."""
    settings = bench.settings(when_full="block", block_timeout_s=1.0)
    writer = Writer(settings, patience=Patience(sleeper, sleeper.sleep))
    writer.start()
    for n in range(8):
        writer.append(1, [b"%d" % n * 4000])
    yield writer
    writer.stop(0.0)


def test_an_append_to_a_queue_with_room_does_not_wait(writer, sleeper):
    assert writer.writing == 8
    assert sleeper.slept_s == []


def test_an_append_waits_until_a_consumer_has_made_room(bench, writer, sleeper):
    consumer = bench.consumer()

    def commit_in_the_end() -> None:
        if len(sleeper.slept_s) == 5:
            consumer.commit(2)

    sleeper.then = commit_in_the_end
    assert writer.append(1, [b"new" * 1000]) == 8
    assert len(sleeper.slept_s) == 5
    assert writer.oldest == 2
    assert bench.records(2)[-1] == b"new" * 1000


def test_a_commit_that_frees_no_segment_does_not_end_the_wait(bench, writer, sleeper):
    consumer = bench.consumer()
    sleeper.then = lambda: consumer.commit(1)
    with pytest.raises(QueueFull, match="slowest consumer is at 1"):
        writer.append(1, [b"new" * 1000])


def test_the_wait_ends_with_the_time_and_nothing_is_kept_or_given_up(bench, writer, sleeper):
    with pytest.raises(QueueFull, match="slowest consumer is at 0"):
        writer.append(1, [b"new" * 1000])
    assert sleeper.monotonic_s() == pytest.approx(1.0)
    assert max(sleeper.slept_s) == BLOCK_RETRY_S
    assert (writer.writing, writer.oldest, writer.dropped) == (8, 0, 0)
    assert bench.records() == [b"%d" % n * 4000 for n in range(8)]


def test_a_batch_that_no_empty_queue_could_hold_is_refused_without_waiting(writer, sleeper):
    with pytest.raises(RecordTooLarge):
        writer.append(1, [b"x" * 4000] * 9)
    assert sleeper.slept_s == []


def test_reject_never_waits(bench, sleeper):
    writer = Writer(bench.settings(), patience=Patience(sleeper, sleeper.sleep))
    writer.start()
    with pytest.raises(QueueFull):
        writer.append(1, [b"x" * 4000] * 6)
        writer.append(1, [b"x" * 4000] * 6)
    writer.stop(0.0)
    assert sleeper.slept_s == []


def test_a_commit_in_another_thread_wakes_a_real_wait(bench):
    writer, consumer = bench.writer(when_full="block", block_timeout_s=60.0), bench.consumer()
    for n in range(8):
        writer.append(1, [b"%d" % n * 4000])
    timer = threading.Timer(0.05, consumer.commit, [8])
    timer.start()
    assert writer.append(1, [b"new" * 1000]) == 8
    timer.join()


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, BLOCK_TIMEOUT_S_MAX + 1])
def test_the_wait_must_be_bounded(bench, timeout_s):
    with pytest.raises(ConfigError, match="block_timeout_s"):
        bench.settings(when_full="block", block_timeout_s=timeout_s)

"""What a sync may call durable beside appends, after failures, and across starts."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable

import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.queue.durability import SyncFailed

from .watched_disk import WatchedDisk


def failing(wanted: str, times: int = 1) -> Callable[[str], None]:
    left = [times]

    def fail(name: str) -> None:
        if name == wanted and left[0]:
            left[0] -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    return fail


BATCH = [b"x" * 4000] * 6  # three segments


def test_a_first_sync_in_the_middle_of_a_batch_watches_the_segments_it_has_filled(bench):
    disk = WatchedDisk()
    writer = bench.writer(disk)

    def sync_before_the_third(name: str) -> None:
        if name == "00002.seg":
            disk.before_write = lambda name: None
            assert writer.sync() == 0

    disk.before_write = sync_before_the_third
    writer.append(1, BATCH)
    assert writer.sync() == writer.durable == len(BATCH)
    assert set(disk.synced) >= {"00000.seg", "00001.seg", "00002.seg"}


def test_a_segment_that_is_only_reserved_is_not_synced(bench):
    disk = WatchedDisk()
    writer = bench.writer(disk)
    writer.append(1, [b"first"])
    writer.sync()
    disk.synced.clear()

    def sync_before_the_third(name: str) -> None:
        if name == "00002.seg":
            disk.before_write = lambda name: None
            writer.sync()

    disk.before_write = sync_before_the_third
    writer.append(1, BATCH)
    assert disk.synced == ["00000.seg"]


def test_a_sync_that_fails_in_the_middle_of_a_turn_does_not_stall_those_to_come(bench):
    disk = WatchedDisk()
    writer, consumer = bench.writer(disk), bench.consumer()
    writer.append(1, [b"first"])
    writer.sync()

    def fail_before_the_second(name: str) -> None:
        if name == "00001.seg":
            disk.before_write = lambda name: None
            disk.before_sync = failing("00000.seg")
            with pytest.raises(SyncFailed):
                writer.sync()

    disk.before_write = fail_before_the_second
    writer.append(1, [b"x" * 4000] * 4)
    with pytest.raises(RetryableError, match="a sync has failed"):
        writer.sync()
    consumer.commit(4)
    writer.append(1, [b"goes on"])
    assert writer.sync() == 6
    assert set(disk.synced) >= {"00001.seg"}


def test_records_of_the_batch_that_went_into_a_failed_segment_are_suspect_too(bench):
    disk = WatchedDisk()
    writer, consumer = bench.writer(disk), bench.consumer()
    writer.append(1, [b"first"])
    writer.sync()

    def fail_before_the_second(name: str) -> None:
        if name == "00001.seg":
            disk.before_write = lambda name: None
            disk.before_sync = failing("00000.seg")
            with pytest.raises(SyncFailed):
                writer.sync()

    disk.before_write = fail_before_the_second
    writer.append(1, [b"x" * 4000] * 4)
    in_the_first = bench.runs()[0].end
    assert in_the_first > 1
    consumer.commit(in_the_first - 1)
    with pytest.raises(RetryableError, match=f"up to {in_the_first} "):
        writer.sync()
    consumer.commit(in_the_first)
    assert writer.sync() == 5


def test_fsync_does_not_call_durable_what_an_earlier_writer_failed_to_sync(bench):
    disk = WatchedDisk()
    writer = bench.writer(disk)
    writer.append(1, [b"a", b"b"])
    disk.before_sync = failing("00000.seg")
    with pytest.raises(SyncFailed):
        writer.sync()
    bench.close()
    writer, consumer = bench.writer(disk, durability="fsync"), bench.consumer()
    assert writer.durable == 0
    assert writer.append(1, [b"c"]) == 2
    assert writer.durable == 0
    with pytest.raises(RetryableError, match="up to 2 "):
        writer.sync()
    consumer.commit(2)
    assert writer.sync() == writer.durable == 3
    assert len(bench.segment_paths()) == 2


def test_a_start_under_fsync_whose_sync_fails_is_remembered_by_the_next(bench):
    bench.writer().append(1, [b"a", b"b"])
    bench.close()
    disk = WatchedDisk()
    disk.before_sync = failing("00000.seg")
    with pytest.raises((RetryableError, PermanentError), match=r"00000\.seg"):
        bench.writer(disk, durability="fsync")
    writer = bench.writer(disk, durability="fsync")
    assert writer.durable == 0
    with pytest.raises(RetryableError, match="up to 2 "):
        writer.sync()
    bench.close()
    assert bench.writer(disk, durability="fsync").durable == 0


def test_suspects_are_forgotten_only_once_their_segment_is_left(bench):
    """A header that never reached the disk would take with it whatever is added below it."""
    disk = WatchedDisk()
    writer, consumer = bench.writer(disk), bench.consumer()
    writer.append(1, [b"a"])
    disk.before_sync = failing("00000.seg")
    with pytest.raises(SyncFailed):
        writer.sync()
    consumer.commit(1)
    for _ in range(2):
        bench.close()
        assert bench.writer(disk).sync() == 1
    bench.close()
    bench.writer(disk).append(1, [b"b"])
    assert len(bench.segment_paths()) == 2


def test_stop_waits_for_no_sync_and_the_next_writer_takes_its_outcome_for_unknown(bench):
    disk, begun, ends = WatchedDisk(), threading.Event(), threading.Event()
    writer = bench.writer(disk)
    writer.append(1, [b"a"])

    def hang(name: str) -> None:
        disk.before_sync = lambda name: None
        begun.set()
        ends.wait()

    disk.before_sync = hang
    thread = threading.Thread(target=writer.sync)
    thread.start()
    begun.wait()
    bench.close()
    assert not ends.is_set()
    writer = bench.writer(disk)
    ends.set()
    thread.join()
    with pytest.raises(RetryableError, match="a sync has failed"):
        writer.sync()
    bench.consumer().commit(1)
    assert writer.sync() == 1


def test_a_forked_child_may_not_sync(bench):
    writer = bench.writer()
    writer.append(1, [b"a"])
    child = os.fork()
    if not child:
        code = 1
        try:
            writer.sync()
        except PermanentError:
            code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_came_behind_suspects_is_sound_to_the_next_writer_as_well(bench):
    disk = WatchedDisk()
    writer, consumer = bench.writer(disk), bench.consumer()
    writer.append(1, [b"a"])
    disk.before_sync = failing("00000.seg")
    with pytest.raises(SyncFailed):
        writer.sync()
    writer.append(1, [b"b"])
    consumer.commit(1)
    bench.close()
    writer = bench.writer(disk, durability="fsync")
    assert writer.append(1, [b"c"]) == 2
    assert writer.sync() == writer.durable == 3
    assert len(bench.segment_paths()) == 2

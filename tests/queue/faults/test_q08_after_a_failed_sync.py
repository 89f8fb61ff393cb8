"""Q8: what follows a failed sync, or a second failure, each in its smallest history."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.disk import Disk
from skyfarer.queue.durability import SyncFailed

from ..forgetful_disk import ForgetfulDisk


class OldestOfAll:
    """The worst cut there can be: nothing is left but what is durable."""

    def choice(self, versions):
        return versions[0]


def test_q08_what_sync_called_durable_keeps_its_name(bench, new_bench):
    disk, after = ForgetfulDisk(bench.directory), new_bench("after")
    writer = bench.writer(disk)
    writer.append(1, [b"acknowledged"])
    durable = writer.sync()
    disk.cut(after.directory, OldestOfAll())
    after.writer()
    disk.close_all()
    assert len(after.records()) >= durable


def test_q08_a_consumer_does_not_fall_behind_the_oldest_record_after_a_failed_sync(
    bench, new_bench
):
    disk, after = ForgetfulDisk(bench.directory), new_bench("after")
    writer, consumer = (
        bench.writer(disk, durability="fsync"),
        Consumer(bench.directory, "main", disk),
    )
    consumer.start()
    for _ in range(8):
        writer.append(1, [b"x" * 4000])
    consumer.commit(8)
    disk.fail_at = len(disk.synced) + 1
    with pytest.raises(PermanentError, match="consumer-main"):
        writer.append(1, [b"x" * 4000])
    for _ in range(8):
        writer.append(1, [b"y" * 4000])
    disk.cut(after.directory, OldestOfAll())
    consumer.stop()
    disk.close_all()
    assert after.writer().dropped == 0


def test_q08_a_restart_does_not_make_durable_what_could_not_be_synced(bench, new_bench):
    disk, after = ForgetfulDisk(bench.directory), new_bench("after")
    writer = bench.writer(disk)
    writer.append(1, [b"first"])
    writer.sync()
    writer.append(1, [b"second"])
    disk.fail_at = len(disk.synced) + 1
    with pytest.raises(SyncFailed):
        writer.sync()
    writer.stop(0.0)
    writer, consumer = bench.writer(disk), bench.consumer()
    with pytest.raises(RetryableError, match="as soon as every consumer has committed"):
        writer.sync()
    assert writer.durable == 0
    disk.cut(after.directory, OldestOfAll())
    consumer.commit(2)
    assert writer.sync() == 2
    disk.close_all()
    after.writer()
    assert after.records() == [b"first"]


def test_q08_after_a_restart_records_go_to_another_file_than_the_one_that_failed(bench, new_bench):
    disk, after = ForgetfulDisk(bench.directory), new_bench("after")
    writer = bench.writer(disk)
    writer.append(1, [b"delivered"])
    disk.fail_at = len(disk.synced) + 2
    with pytest.raises(SyncFailed):
        writer.sync()
    writer.stop(0.0)
    writer, consumer = bench.writer(disk), bench.consumer()
    writer.append(1, [b"acknowledged"])
    consumer.commit(1)
    assert writer.sync() == 2
    disk.cut(after.directory, OldestOfAll())
    disk.close_all()
    after.writer()
    assert after.records()[-1:] == [b"acknowledged"]


class NoDescriptorsDisk(ForgetfulDisk):
    """While it is `short`, a segment cannot be opened."""

    short = False

    def open(self, path: Path, flags: int) -> int:
        if self.short and path.suffix == ".seg":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(path, flags)


def test_q08_a_segment_that_the_first_sync_could_not_open_is_synced_by_the_second(bench, new_bench):
    disk, after = NoDescriptorsDisk(bench.directory), new_bench("after")
    writer = bench.writer(disk)
    writer.append(1, [b"acknowledged"])
    disk.short = True
    with pytest.raises(RetryableError, match="Too many open files"):
        writer.sync()
    disk.short = False
    durable = writer.sync()
    disk.cut(after.directory, OldestOfAll())
    after.writer()
    disk.close_all()
    assert len(after.records()) >= durable


class DyingDisk(Disk):
    """From `dying` on no sync succeeds."""

    dying = False

    def sync(self, fd: int) -> None:
        if self.dying:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def sync_data(self, fd: int) -> None:
        self.sync(fd)


def test_q08_a_refused_batch_stays_refused_when_every_sync_fails(bench):
    disk = DyingDisk()
    writer = bench.writer(disk, durability="fsync")
    writer.append(1, [b"kept"])
    disk.dying = True
    with pytest.raises(SkyfarerError):
        writer.append(1, [b"refused"])
    assert bench.records() == [b"kept"]
    bench.close()
    bench.writer()
    assert bench.records() == [b"kept"]


class FullAndFailingDisk(Disk):
    """There is no space for a new file, and what was begun cannot be removed."""

    def allocate(self, fd: int, size_bytes: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def unlink(self, path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_q08_a_disk_that_is_full_and_fails_is_told_in_the_queues_own_words(bench):
    with pytest.raises(Exception) as raised:
        bench.writer(FullAndFailingDisk())
    assert isinstance(raised.value, SkyfarerError)

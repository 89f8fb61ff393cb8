"""Q8, histories that once broke the queue's word: each with its smallest form."""

from __future__ import annotations

import errno
import os

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
    disk, after = ForgetfulDisk(bench.directory, journal=True), new_bench("after")
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
    disk, after = ForgetfulDisk(bench.directory, journal=True), new_bench("after")
    writer = bench.writer(disk)
    writer.append(1, [b"first"])
    writer.sync()
    writer.append(1, [b"second"])
    disk.fail_at = len(disk.synced) + 1
    with pytest.raises(SyncFailed):
        writer.sync()
    writer.stop(0.0)
    again = bench.writer(disk)
    with pytest.raises(RetryableError, match="records up to 2 are not known to be durable"):
        again.sync()
    disk.cut(after.directory, OldestOfAll())
    after.writer()
    disk.close_all()
    assert len(after.records()) >= again.durable


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

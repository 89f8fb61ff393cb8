"""What survives a power cut, and what a failed sync means."""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import threading
from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError, PermanentError, RetryableError
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.disk import Disk
from skyfarer.queue.durability import UNSYNCED_SEGMENTS_MAX, SyncFailed
from skyfarer.queue.layout import PAGE_BYTES
from skyfarer.queue.writer import Writer

from .forgetful_disk import ForgetfulDisk

BATCH_MAX = 9
STATES_PER_CALL = 2


class CountingDisk(Disk):
    """Notes which file each sync was for; the `fail_at`-th fails. That file is held, so that its
    number is not used for another."""

    def __init__(self, fail_at: int = 0) -> None:
        self.fail_at = fail_at
        self.calls = 0
        self.synced: list[int] = []
        self.failed: int | None = None
        self.held: list[int] = []

    def sync(self, fd: int) -> None:
        self.calls += 1
        inode = os.fstat(fd).st_ino
        self.synced.append(inode)
        if self.calls == self.fail_at:
            self.failed = inode
            self.held.append(os.dup(fd))
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def failed_a_segment(self) -> bool:
        return any(".seg" in str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in self.held)

    def release(self) -> None:
        while self.held:
            os.close(self.held.pop())

    def sync_data(self, fd: int) -> None:
        self.sync(fd)


def body(sequence: int) -> bytes:
    return random.Random(sequence).randbytes(sequence * 7919 % 3000)


def bodies(first: int, count: int) -> list[bytes]:
    return [body(sequence) for sequence in range(first, first + count)]


class History:
    """Appends over several laps of the ring; before each call to the disk the power may go."""

    def __init__(self, bench, new_bench, ignored=lambda mode: False) -> None:
        self.disk = ForgetfulDisk(bench.directory, ignored)
        self.chance = random.Random(8)
        self.states = self.acknowledged = self.alarms = 0
        self.lost: set[int] = set()
        self._bench, self._new_bench = bench, new_bench

    def run(self, batches: int, when_full: str = "reject") -> None:
        """With "drop_oldest" nothing is ever committed."""
        self.writer = writer = self._bench.writer(
            self.disk, durability="fsync", when_full=when_full
        )
        self._commits = when_full == "reject"
        consumer = Consumer(self._bench.directory, "main", self.disk)
        consumer.start()
        self.disk.before_call = self._cut
        for _ in range(batches):
            writer.append(1, bodies(writer.writing, self.chance.randint(1, BATCH_MAX)))
            self.acknowledged = writer.writing
            if self._commits:
                consumer.commit(max(consumer.committed(), writer.writing - 4))
        consumer.stop()
        self.disk.close_all()

    def _cut(self) -> None:
        for _ in range(STATES_PER_CALL):
            self.states += 1
            bench = self._new_bench(f"cut{self.states}")
            self.disk.cut(bench.directory, self.chance)
            try:
                self.lost |= self._lost(bench)
            except PermanentError:
                self.lost.add(self.acknowledged)
            bench.close()
            shutil.rmtree(bench.directory)

    def _lost(self, bench) -> set[int]:
        writer, consumer = bench.writer(), bench.consumer()
        self.alarms += writer.recovered.lost + writer.recovered.quarantined
        begin, held = consumer.committed(), set()
        for run in bench.runs(begin):
            for sequence, payload in zip(run.sequences(), run.payloads(), strict=True):
                assert payload == body(sequence)
                held.add(sequence)
        assert writer.writing <= self.acknowledged + BATCH_MAX
        first = writer.append(1, [b"goes on"])
        assert bench.records(first) == [b"goes on"]
        wanted = begin if self._commits else self.writer.oldest
        return set(range(wanted, self.acknowledged)) - held


def test_whatever_pages_and_names_a_power_cut_takes_synced_records_are_there(bench, new_bench):
    history = History(bench, new_bench)
    history.run(batches=60)
    assert history.lost == set()
    assert history.alarms == 0
    assert history.states > 500


def test_what_was_dropped_for_want_of_room_is_not_lost_after_a_power_cut(bench, new_bench):
    history = History(bench, new_bench)
    history.run(batches=20, when_full="drop_oldest")
    assert history.lost == set()
    assert history.alarms == 0
    assert history.writer.oldest > 0


@pytest.mark.parametrize("kind", [stat.S_ISREG, stat.S_ISDIR], ids=["files", "names"])
def test_the_same_check_finds_losses_when_a_kind_of_sync_is_a_lie(bench, new_bench, kind):
    history = History(bench, new_bench, kind)
    history.run(batches=12)
    assert history.lost


def test_a_start_under_fsync_makes_durable_what_an_earlier_writer_only_appended(bench, new_bench):
    disk = ForgetfulDisk(bench.directory)
    bench.writer(disk).append(1, bodies(0, 12))
    bench.close()
    assert bench.writer(disk, durability="fsync").durable == 12
    for number in range(50):
        after = new_bench(f"cut{number}")
        disk.cut(after.directory, random.Random(number))
        after.writer()
        assert after.records() == bodies(0, 12)
    disk.close_all()


def scenario(writer: Writer, consumer: Consumer) -> tuple[list[bytes], int]:
    """Two laps; what is refused is tried again, as callers do."""
    expected: list[bytes] = []
    failures = 0
    while len(expected) < 60:
        batch = bodies(len(expected), 5)
        try:
            first = writer.append(1, batch)
        except (RetryableError, PermanentError):
            assert writer.writing == writer.durable == len(expected)
            failures += 1
            first = writer.append(1, batch)
        assert first == len(expected)
        expected += batch
        consumer.commit(len(expected) - 5)
    return expected, failures


def test_any_one_failed_sync_costs_its_batch_and_is_never_tried_again(new_bench):
    whole, healthy = new_bench("whole"), CountingDisk()
    scenario(whole.writer(healthy, durability="fsync"), whole.consumer())
    begun = CountingDisk()
    new_bench("begun").writer(begun, durability="fsync")
    segments_failed = 0
    for fail_at in range(begun.calls + 1, healthy.calls + 1):
        bench, disk = new_bench(str(fail_at)), CountingDisk(fail_at)
        writer, consumer = bench.writer(disk, durability="fsync"), bench.consumer()
        expected, failures = scenario(writer, consumer)
        assert failures == 1
        assert bench.records(consumer.committed()) == expected[consumer.committed() :]
        if disk.failed_a_segment():
            assert disk.failed not in disk.synced[fail_at:]
            segments_failed += 1
        disk.release()
        bench.close()
        assert bench.writer(durability="fsync").writing == len(expected)
        assert bench.records(consumer.committed()) == expected[consumer.committed() :]
        bench.close()
    assert segments_failed > 10


def test_a_batch_refused_after_a_failed_sync_is_gone_and_the_next_has_another_segment(bench):
    disk = CountingDisk()
    writer = bench.writer(disk, durability="fsync")
    writer.append(1, [b"kept"])
    disk.fail_at = disk.calls + 1
    with pytest.raises(SyncFailed, match=r"00000\.seg.*check the disk"):
        writer.append(1, [b"refused"])
    assert (writer.writing, writer.durable, writer.sync_failures) == (1, 1, 1)
    writer.stop(0.0)
    assert bench.writer().writing == 1
    bench.close()
    writer = bench.writer(CountingDisk(), durability="fsync")
    assert writer.append(1, [b"next"]) == 1
    assert bench.records() == [b"kept", b"next"]


@pytest.mark.parametrize("call", [2, 3], ids=["begin_sync", "pwrite"])
def test_what_fails_behind_the_payloads_is_a_failed_sync(bench, troubled_disk, failing_at, call):
    """The disk is told to begin, and under "fsync" entries go by a call that can fail."""
    disk = troubled_disk(failing_at(0))
    writer = bench.writer(disk, durability="fsync")
    writer.append(1, [b"kept"])
    disk.trouble = failing_at(disk.calls + call, errno.EIO)
    with pytest.raises(SyncFailed, match=r"00000\.seg.*check the disk"):
        writer.append(1, [b"refused", b"too"])
    assert (writer.writing, writer.durable, writer.sync_failures) == (1, 1, 1)
    assert writer.append(1, [b"next"]) == 1
    assert bench.records() == [b"kept", b"next"]
    assert len(bench.segment_paths()) == 2


def test_a_batch_across_segments_is_refused_whole(bench):
    disk = CountingDisk()
    writer = bench.writer(disk, durability="fsync")
    writer.append(1, [b"kept"])
    batch = [b"x" * 4000] * 6
    for late in (2, 3, 4):
        disk.fail_at = disk.calls + late
        with pytest.raises((RetryableError, PermanentError)):
            writer.append(1, batch)
        assert bench.records() == [b"kept"]
    assert writer.append(1, batch) == 1
    assert bench.records() == [b"kept", *batch]


def test_a_segment_that_failed_a_sync_before_it_held_a_record_is_not_used(new_bench):
    """Of a batch across several each is wiped durably before the next is."""
    batch, failed_early = [b"x" * 4000] * 6, 0
    for late in range(1, 9):
        bench, disk = new_bench(str(late)), CountingDisk()
        writer, consumer = bench.writer(disk, durability="fsync"), bench.consumer()
        consumer.commit(writer.append(1, batch) + len(batch))
        disk.fail_at = disk.calls + late
        with pytest.raises((RetryableError, PermanentError)):
            writer.append(1, batch)
        failed_early += disk.failed_a_segment() and not any(os.pread(disk.held[0], PAGE_BYTES, 0))
        for _ in range(3):
            consumer.commit(writer.append(1, batch) + len(batch))
        assert disk.failed not in disk.synced[disk.fail_at :] or not disk.failed_a_segment()
        assert bench.records(consumer.committed() - len(batch)) == batch
        disk.release()
        bench.close()
    assert failed_early > 2


def test_a_turn_to_the_next_segment_syncs_nothing_but_commits_it_does_not_know_yet(bench):
    disk = CountingDisk()
    writer, consumer = bench.writer(disk, durability="fsync"), bench.consumer()
    for _ in range(8):
        consumer.commit(writer.append(1, [b"x" * 4000]) + 1)
    made, before = {path.name for path in bench.segment_paths()}, disk.calls
    for _ in range(12):
        consumer.commit(writer.append(1, [b"x" * 4000]) + 1)
    assert disk.calls - before == 12 + 2
    assert {path.name for path in bench.segment_paths()} == made


def test_a_segment_this_writer_did_not_fill_is_wiped_durably_before_it_is_used(bench):
    """An append of the same number may have begun there before a power cut."""
    writer = bench.writer(durability="fsync")
    writer.append(1, [b"x" * 4000] * 2)
    bench.close()
    disk = CountingDisk()
    writer, consumer = bench.writer(disk, durability="fsync"), bench.consumer()
    syncs = []
    for _ in range(24):
        before = disk.calls
        consumer.commit(writer.append(1, [b"x" * 4000]) + 1)
        syncs.append(disk.synced[before:].count(bench.segment_paths()[0].stat().st_ino))
    assert [count for count in syncs if count] == [2, 1, 1, 1, 1, 1]


def test_commits_whose_sync_failed_are_synced_before_their_segment_gives_way(bench):
    disk = CountingDisk()
    writer, consumer = bench.writer(disk, durability="fsync"), bench.consumer()
    for _ in range(8):
        consumer.commit(writer.append(1, [b"x" * 4000]) + 1)
    disk.fail_at = disk.calls + 1
    with pytest.raises((RetryableError, PermanentError), match="consumer-main"):
        writer.append(1, [b"x" * 4000])
    writer.append(1, [b"x" * 4000])
    assert disk.failed in disk.synced[disk.fail_at :]
    disk.release()


def test_a_batch_that_fits_the_next_segment_leaves_a_little_of_the_one_before(bench):
    """A sync costs more than a sixteenth of a segment does."""
    disk = CountingDisk()
    writer = bench.writer(disk, durability="fsync")
    writer.append(1, [b"x" * 4000, b"x" * 3700])
    writer.append(1, [b"a" * 400, b"b" * 400])
    assert [run.first for run in bench.runs()] == [0, 2]
    writer.append(1, [b"x" * 4000])
    writer.append(1, [b"c" * 3000, b"d" * 3000])
    assert [run.first for run in bench.runs()] == [0, 2, 6]
    assert [len(record) for record in bench.records()] == [4000, 3700, 400, 400, 4000, 3000, 3000]


def test_sync_moves_the_watermark_to_what_was_appended_before_it(bench):
    disk = CountingDisk()
    writer = bench.writer(disk)
    writer.append(1, bodies(0, 9))
    assert writer.durable == 0
    assert writer.sync() == writer.durable == 9
    assert {path.stat().st_ino for path in bench.segment_paths()} <= set(disk.synced)
    writer.append(1, bodies(9, 1))
    assert writer.durable == 9


def test_after_a_failed_sync_records_are_durable_only_once_they_are_committed(bench):
    disk = CountingDisk()
    writer, consumer = bench.writer(disk), bench.consumer()
    writer.append(1, [b"a", b"b"])
    writer.sync()
    writer.append(1, [b"c"])
    disk.fail_at = disk.calls + 1
    with pytest.raises(SyncFailed, match=r"00000\.seg"):
        writer.sync()
    writer.append(1, [b"d"])
    assert len(bench.segment_paths()) == 2
    with pytest.raises(RetryableError, match="up to 3"):
        writer.sync()
    writer.append(1, [b"e"])
    assert len(bench.segment_paths()) == 2
    assert (writer.durable, writer.sync_failures) == (2, 1)
    assert disk.failed not in disk.synced[disk.fail_at :]
    consumer.commit(3)
    assert writer.sync() == 5
    assert bench.records() == [b"a", b"b", b"c", b"d", b"e"]


def test_sync_runs_beside_appends(bench):
    writer, consumer = bench.writer(CountingDisk()), bench.consumer()
    done, seen = threading.Event(), [0]

    def sync_on() -> None:
        while not done.is_set():
            seen.append(writer.sync())

    thread = threading.Thread(target=sync_on)
    thread.start()
    for _ in range(300):
        writer.append(1, bodies(writer.writing, 3))
        consumer.commit(writer.writing)
    done.set()
    thread.join()
    assert seen == sorted(seen)
    assert writer.sync() == writer.writing == 900


def test_an_append_syncs_itself_when_too_many_segments_wait_for_it(bench):
    disk = CountingDisk()
    writer = bench.writer(disk, capacity_bytes=2 * UNSYNCED_SEGMENTS_MAX * 16 * KIB)
    writer.append(1, [b"first"])
    assert writer.sync() == 1
    while len(bench.segment_paths()) <= UNSYNCED_SEGMENTS_MAX + 1:
        writer.append(1, [b"x" * 4000])
    assert writer.durable > UNSYNCED_SEGMENTS_MAX


def test_under_fsync_readers_see_only_what_is_durable(bench):
    disk = CountingDisk()
    writer, reader = bench.writer(disk, durability="fsync"), bench.reader()
    writer.append(1, [b"kept"])
    disk.fail_at = disk.calls + 1
    with pytest.raises(SyncFailed):
        writer.append(1, [b"refused"])
    assert reader.writing() == writer.sync() == 1


def test_sync_before_start_and_an_unknown_durability_are_refused(bench):
    with pytest.raises(PermanentError, match="sync before start"):
        Writer(bench.settings()).sync()
    with pytest.raises(ConfigError, match="'append' or 'fsync'"):
        bench.settings(durability="hope")

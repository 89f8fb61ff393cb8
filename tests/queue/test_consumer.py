from __future__ import annotations

import errno
import os

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.queue.checkpoint import REASONS_MAX, peek
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import QueueLocked, QueueMissing
from skyfarer.queue.layout import PAGE_BYTES


@pytest.fixture
def ten(bench):
    bench.writer().append(1, [b"x"] * 10)
    return bench


def test_a_commit_is_there_after_a_restart_with_what_was_dropped(ten):
    consumer = ten.consumer()
    assert (consumer.committed(), consumer.dropped()) == (0, {})
    consumer.commit(3, {"corrupt": 1})
    consumer.commit(7, {"corrupt": 1, "rejected": 2})
    consumer.stop()
    consumer = ten.consumer()
    assert (consumer.committed(), consumer.dropped()) == (7, {"corrupt": 2, "rejected": 2})


def test_a_commit_never_goes_back(ten):
    consumer = ten.consumer()
    consumer.commit(5)
    consumer.commit(5)
    with pytest.raises(PermanentError, match="cannot commit 4"):
        consumer.commit(4)
    assert consumer.committed() == 5


def test_a_commit_never_passes_the_writer(ten):
    consumer = ten.consumer()
    with pytest.raises(PermanentError, match="the written 10"):
        consumer.commit(11)


def test_more_cannot_be_dropped_than_was_passed(ten):
    consumer = ten.consumer()
    with pytest.raises(PermanentError, match="not a count of passed records"):
        consumer.commit(2, {"corrupt": 3})
    with pytest.raises(PermanentError, match="not a count of passed records"):
        consumer.commit(2, {"corrupt": -1})
    assert (consumer.committed(), consumer.dropped()) == (0, {})


def test_a_damaged_slot_costs_the_last_commit_and_no_more(ten):
    consumer = ten.consumer()
    for sequence in (2, 4, 6):
        consumer.commit(sequence, {"corrupt": 1})
    consumer.stop()
    path = ten.directory / "consumer-main"
    whole = path.read_bytes()
    for slot, left in ((0, 6), (1, 4)):
        for byte in range(slot * PAGE_BYTES, slot * PAGE_BYTES + 84):
            hurt = bytearray(whole)
            hurt[byte] ^= 1 << byte % 8
            path.write_bytes(hurt)
            consumer = ten.consumer()
            assert consumer.committed() == left
            assert consumer.dropped() == {"corrupt": left // 2}
            consumer.stop()


def test_a_consumer_with_nothing_left_of_its_file_begins_with_the_oldest_record(ten, caplog):
    path = ten.directory / "consumer-main"
    path.write_bytes(b"\xff" * 2 * PAGE_BYTES)
    consumer = ten.consumer()
    assert consumer.committed() == 0
    assert "both slots are damaged" in caplog.text
    consumer.commit(4)
    consumer.stop()
    assert ten.consumer().committed() == 4


def test_a_name_is_used_by_one_consumer_at_a_time(ten):
    ten.consumer()
    with pytest.raises(QueueLocked, match="consumer-main is in use"):
        Consumer(ten.directory, "main").start()


def test_an_undeclared_consumer_is_told_where_to_declare_it(ten):
    with pytest.raises(QueueMissing, match="'consumers'"):
        Consumer(ten.directory, "stranger").start()


def test_a_consumer_without_a_queue_is_told_to_wait(tmp_path):
    with pytest.raises(QueueMissing, match="its writer makes it"):
        Consumer(tmp_path, "main").start()


def test_a_consumer_declared_later_begins_with_the_oldest_record_held(bench):
    writer, consumer = bench.writer(), bench.consumer()
    for _ in range(10):
        writer.append(1, [b"x" * 4000] * 2)
        consumer.commit(writer.writing)
    writer.stop(1.0)
    writer = bench.writer(consumers=("main", "late"))
    assert bench.consumer("late").committed() == writer.oldest > 0


def test_reasons_are_bounded_and_the_rest_is_summed_up(bench):
    bench.writer().append(1, [b"x"] * 100)
    consumer = bench.consumer()
    for n in range(100):
        consumer.commit(n + 1, {f"reason-{n}": 1})
    dropped = consumer.dropped()
    assert len(dropped) == REASONS_MAX
    assert sum(dropped.values()) == 100
    assert dropped["other"] == 100 - REASONS_MAX + 1
    with pytest.raises(PermanentError, match="drop reason"):
        consumer.commit(100, {"r" * 33: 1})


def test_commit_needs_a_started_consumer_and_stop_is_safe_anytime(ten):
    consumer = Consumer(ten.directory, "main")
    consumer.stop()
    with pytest.raises(PermanentError, match="before start"):
        consumer.commit(1)
    consumer.start()
    consumer.start()
    consumer.stop()
    consumer.stop()


def test_onlookers_see_a_place_without_taking_the_name(ten):
    ten.consumer().commit(6, {"corrupt": 1})
    place = peek(ten.directory, "main", bytes.fromhex(ten.reader().queue_id))
    assert place is not None and (place.committed, place.dropped) == (6, {"corrupt": 1})


class CountedSyncs(Disk):
    def __init__(self) -> None:
        self.syncs = 0
        self.broken = False

    def sync_data(self, fd: int) -> None:
        self.syncs += 1
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_durable_commit_has_waited_for_the_disk_and_one_that_failed_is_written_again(bench):
    bench.writer().append(1, [b"a", b"b"])
    disk = CountedSyncs()
    consumer = Consumer(bench.directory, "main", disk, durable=True)
    consumer.start()
    consumer.commit(1)
    assert disk.syncs == 1
    disk.broken = True
    with pytest.raises(PermanentError, match=r"consumer-main.*check the disk"):
        consumer.commit(2, {"rejected": 1})
    assert (consumer.committed(), consumer.dropped()) == (1, {})
    disk.broken = False
    consumer.commit(2, {"rejected": 1})
    assert (consumer.committed(), consumer.dropped(), disk.syncs) == (2, {"rejected": 1}, 3)
    consumer.stop()
    again = bench.consumer()
    assert (again.committed(), again.dropped()) == (2, {"rejected": 1})

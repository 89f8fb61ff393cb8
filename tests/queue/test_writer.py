from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from random import Random

import pytest

from skyfarer.base.errors import ConfigError, PermanentError, RetryableError
from skyfarer.base.units import KIB
from skyfarer.queue.errors import QueueFull, RecordTooLarge
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, decode_segment_header
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.split import PIECE_BYTES
from skyfarer.queue.writer import Writer
from skyfarer.testing.faulty_disk import FaultyDisk

from .bench import UnsyncedDisk


def test_records_come_back_in_order_with_their_kinds(bench):
    writer = bench.writer()
    assert writer.append(7, [b"one", b"", b"three"]) == 0
    assert writer.append(9, [b"four"]) == 3
    [run] = bench.runs()
    assert [bytes(payload) for payload in run.payloads()] == [b"one", b"", b"three", b"four"]
    assert run.kinds() == [7, 7, 7, 9]
    assert list(run.sequences()) == [0, 1, 2, 3]
    assert (writer.writing, writer.oldest) == (4, 0)


def test_an_empty_batch_changes_nothing(bench):
    writer = bench.writer()
    writer.append(1, [b"x"])
    assert writer.append(1, []) == 1
    assert writer.writing == 1


def test_a_batch_that_does_not_fit_the_segment_goes_on_in_the_next(bench):
    writer = bench.writer()
    payloads = [bytes([n]) * 3000 for n in range(5)]
    assert writer.append(1, payloads) == 0
    assert bench.records() == payloads
    assert [run.count for run in bench.runs()] == [2, 2, 1]


def test_many_small_records_fill_the_slots_before_the_bytes(bench):
    writer = bench.writer()
    payloads = [b"%d" % n for n in range(600)]
    writer.append(1, payloads)
    assert bench.records() == payloads
    assert [run.count for run in bench.runs()] == [204, 204, 192]


def test_a_batch_of_more_buffers_than_one_call_takes_is_written_whole(bench):
    writer = bench.writer(segment_bytes=1024 * KIB, capacity_bytes=2048 * KIB)
    payloads = [b"%d" % n for n in range(2500)]
    writer.append(1, payloads)
    assert bench.records() == payloads


def test_a_batch_written_in_parts_comes_back_whole_or_not_at_all(bench):
    disk = FaultyDisk()
    writer = bench.writer(disk, segment_bytes=1024 * KIB, capacity_bytes=2048 * KIB)
    payloads = [(b"%d." % n * 3000)[: n * 137 % 4096] for n in range(300)]
    writer.append(1, [b"before"])
    calls = disk.calls
    writer.append(1, payloads)
    writes = disk.calls - calls - 1
    assert sum(map(len, payloads)) > 2 * PIECE_BYTES < PIECE_BYTES * writes
    disk.refuse_at(2)
    with pytest.raises(RetryableError, match="No space left"):
        writer.append(1, payloads[:200])
    writer.append(1, [b"after"])
    assert bench.records() == [b"before", *payloads, b"after"]


@pytest.mark.parametrize("durability", ["append", "fsync"])
def test_a_reused_segment_holds_nothing_behind_its_records_whatever_the_lap_before_had(
    bench, durability
):
    random, geometry = Random(7), bench.settings().geometry
    writer, consumer = bench.writer(durability=durability), bench.consumer()
    for lap in range(120):
        length, count = random.choice(((1, 200), (300, 5), (3000, 2)))
        writer.append(1, [bytes([lap]) * length] * count)
        consumer.commit(writer.writing)
        if random.random() < 0.1:
            writer.stop(1.0)
            writer = bench.writer(durability=durability)
        pages = [path.read_bytes() for path in bench.segment_paths()]
        queue_id = bytes.fromhex(writer.queue_id)
        headers = [decode_segment_header(page[:PAGE_BYTES], queue_id) for page in pages]
        newest, index = max(
            (header.first, page[geometry.index])
            for header, page in zip(headers, pages, strict=True)
            if header is not None
        )
        assert not any(index[(writer.writing - newest) * SLOT_BYTES :]), lap


def test_numbers_go_on_after_a_restart(bench):
    writer = bench.writer()
    writer.append(1, [b"a", b"b"])
    queue_id = writer.queue_id
    writer.stop(1.0)
    writer = bench.writer()
    assert writer.queue_id == queue_id
    assert writer.append(1, [b"c"]) == 2
    assert bench.records() == [b"a", b"b", b"c"]


def test_a_full_queue_refuses_the_whole_batch_and_keeps_what_it_has(bench):
    writer = bench.writer()
    kept = [bytes([n]) * 4000 for n in range(7)]
    writer.append(1, kept[:4])
    writer.append(1, kept[4:])
    with pytest.raises(QueueFull, match="slowest consumer is at 0"):
        writer.append(1, [b"y" * 4000] * 3)
    assert writer.writing == 7
    assert bench.records() == kept
    writer.append(1, [b"fits"])
    assert bench.records()[-1] == b"fits"


def test_room_returns_when_the_consumer_commits(bench):
    writer, consumer = bench.writer(), bench.consumer()
    for _ in range(2):
        writer.append(1, [b"x" * 4000] * 4)
    consumer.commit(1)
    with pytest.raises(QueueFull):
        writer.append(1, [b"y" * 4000])
    consumer.commit(2)
    assert writer.append(1, [b"y" * 4000]) == 8
    assert writer.oldest == 2
    assert writer.dropped == 0


def test_room_in_use_is_counted_in_segments_that_somebody_still_wants(bench):
    writer, consumer = bench.writer(), bench.consumer()
    segment_bytes = writer._geometry.segment_bytes
    assert writer.used_bytes == 0
    writer.append(1, [b"x" * 4000] * 4)
    held = len(writer._ring.live)
    assert writer.used_bytes == held * segment_bytes > segment_bytes
    consumer.commit(3)
    assert writer.used_bytes == segment_bytes
    consumer.commit(4)
    assert writer.used_bytes == 0
    writer.stop(0.0)
    assert writer.used_bytes == 0


def test_every_declared_consumer_is_waited_for(bench):
    writer = bench.writer(consumers=("fast", "slow"))
    bench.consumer("slow")
    for _ in range(2):
        writer.append(1, [b"x" * 4000] * 4)
    bench.consumer("fast").commit(8)
    with pytest.raises(QueueFull):
        writer.append(1, [b"y" * 4000])


def test_a_record_above_the_limit_is_refused_with_its_whole_batch(bench):
    writer = bench.writer()
    with pytest.raises(RecordTooLarge, match="5000 bytes is above record_bytes_max, 4096"):
        writer.append(1, [b"small", b"x" * 5000])
    assert writer.writing == 0


def test_a_batch_no_empty_queue_could_hold_is_refused_for_good(bench):
    writer = bench.writer()
    with pytest.raises(RecordTooLarge, match="send smaller batches"):
        writer.append(1, [b"x" * 4000] * 7)
    assert writer.writing == 0


@pytest.mark.parametrize("kind", [0, -1, 2**32])
def test_a_kind_that_does_not_fit_its_field_is_refused(bench, kind):
    with pytest.raises(PermanentError, match="kind"):
        bench.writer().append(kind, [b"x"])


def test_append_needs_a_started_writer(bench):
    writer = Writer(bench.settings())
    with pytest.raises(PermanentError, match="before start"):
        writer.append(1, [b"x"])
    assert not bench.directory.exists()


def test_stop_is_safe_twice_and_unstarted(bench):
    writer = Writer(bench.settings())
    writer.stop(1.0)
    writer.start()
    writer.append(1, [b"x"])
    writer.stop(1.0)
    writer.stop(1.0)
    assert (writer.writing, writer.oldest) == (1, 0)
    with pytest.raises(PermanentError, match="after stop"):
        writer.append(1, [b"x"])


def test_files_are_for_the_owner_alone_and_take_their_whole_space(bench):
    bench.writer().append(1, [b"x"])
    assert stat.S_IMODE(bench.directory.stat().st_mode) == 0o700
    for path in bench.directory.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    [segment] = bench.segment_paths()
    assert segment.stat().st_blocks * 512 >= segment.stat().st_size == 16 * KIB


@pytest.mark.parametrize("changes", [{"segment_bytes": 32 * KIB}, {"capacity_bytes": 128 * KIB}])
def test_a_directory_made_with_another_shape_is_refused_with_the_way_out(bench, changes):
    writer = bench.writer()
    writer.append(1, [b"x"])
    writer.stop(1.0)
    with pytest.raises(PermanentError, match=r"was made with segment_bytes=16384.*drained"):
        bench.writer(**changes)
    assert bench.records() == [b"x"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"segment_bytes": 10_000}, "multiple of 4096"),
        ({"capacity_bytes": 16 * KIB}, "two segments"),
        ({"record_bytes_max": 16 * KIB}, "one segment holds"),
        ({"when_full": "explode"}, "'reject' or 'drop_oldest'"),
        ({"consumers": ()}, "at least one"),
        ({"consumers": ("a", "a")}, "each once"),
        ({"consumers": ("../x",)}, "letters, digits"),
    ],
)
def test_settings_that_make_no_queue_are_refused_in_one_sentence(bench, changes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        bench.settings(**changes)


def test_default_settings_are_valid(tmp_path):
    assert QueueSettings(tmp_path).geometry.segments == 32


class InterruptedDisk(UnsyncedDisk):
    """A write is interrupted once, and from then on files cannot be opened until `mended`."""

    def __init__(self) -> None:
        self.armed = self.broken = False

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        if self.armed:
            self.armed, self.broken = False, True
            raise KeyboardInterrupt
        return super().pwrite(fd, data, offset)

    def open(self, path: Path, flags: int) -> int:
        if self.broken and path.name in ("state", "00000.seg"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(path, flags)


def test_a_writer_that_could_not_reopen_says_why_and_goes_on_once_it_can(bench):
    disk = InterruptedDisk()
    writer = bench.writer(disk)
    writer.append(1, [b"kept"])
    disk.armed = True
    with pytest.raises(KeyboardInterrupt):
        writer.append(1, [b"interrupted"])
    for _ in range(2):
        with pytest.raises(RetryableError, match="Too many open files"):
            writer.append(1, [b"refused"])
    with pytest.raises(PermanentError, match="sync"):
        writer.sync()
    disk.broken = False
    writer.start()
    assert writer.append(1, [b"next"]) == 1
    assert bench.records() == [b"kept", b"next"]
    writer.stop(0.0)
    with pytest.raises(PermanentError, match="after stop"):
        writer.append(1, [b"late"])


@pytest.mark.parametrize("durability", ["append", "fsync"])
def test_a_view_of_larger_items_leaves_its_segment_as_long_as_it_was(bench, durability):
    """Its bytes are more than there was room for."""
    writer = bench.writer(durability=durability)
    writer.append(1, [b"x" * 4000])
    for payloads in (
        [memoryview(bytes(3000 * 8)).cast("Q")],
        [b"y", memoryview(bytes(8000)).cast("I")],
    ):
        with pytest.raises(PermanentError, match="must be bytes"):
            writer.append(1, payloads)
        assert bench.segment_paths()[0].stat().st_size == 16 * KIB
    bench.close()
    assert bench.writer(durability=durability).writing == 1
    assert bench.records() == [b"x" * 4000]


def test_a_ring_of_too_many_files_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"131072 files.*65536.*make segment_bytes larger"):
        QueueSettings(tmp_path, 16 * KIB, 131072 * 16 * KIB, record_bytes_max=4 * KIB)

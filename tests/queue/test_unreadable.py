"""Sectors that cannot be read, and calls that fail where nothing is changed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.layout import PAGE_BYTES

from .bench import UnsyncedDisk

PAYLOADS_AT = 2 * PAGE_BYTES  # in a segment of 16 KiB


class BadSector(UnsyncedDisk):
    """Whoever reads a byte of `bad` of the file `name` is told so."""

    def __init__(self, name: str, bad: range) -> None:
        self.name = name
        self.bad = bad
        self.hits = 0

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        if Path(f"/proc/self/fd/{fd}").readlink().name == self.name and any(
            at in self.bad for at in range(offset, offset + length)
        ):
            self.hits += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.pread(fd, length, offset)


def test_a_newest_segment_whose_index_cannot_be_read_is_set_aside(bench):
    bench.writer().append(1, [b"x" * 4000] * 3)
    bench.close()
    disk = BadSector("00001.seg", range(PAGE_BYTES, PAGE_BYTES + 1))
    writer = bench.writer(disk)
    assert disk.hits > 0
    assert (writer.writing, writer.recovered.lost, writer.recovered.quarantined) == (3, 1, 1)
    assert [path.name for path in bench.directory.glob("*.corrupt")] == ["00001.seg.corrupt"]
    assert writer.append(1, [b"goes on"]) == 3
    assert bench.records() == [b"x" * 4000, b"x" * 4000, b"goes on"]


def test_an_only_segment_whose_index_cannot_be_read_is_set_aside_and_its_numbers_stay_used(bench):
    bench.writer().append(1, [b"a", b"b"])
    bench.close()
    writer = bench.writer(BadSector("00000.seg", range(PAGE_BYTES, PAGE_BYTES + 1)))
    assert (writer.writing, writer.recovered.lost) == (2, 2)
    assert writer.append(1, [b"c"]) == 2
    assert bench.records() == [b"c"]


def test_a_last_record_that_cannot_be_read_costs_itself(bench):
    bench.writer().append(1, [b"first", b"last"])
    bench.close()
    disk = BadSector("00000.seg", range(PAYLOADS_AT + 7, PAYLOADS_AT + 8))
    writer = bench.writer(disk)
    assert disk.hits > 0
    assert (writer.writing, writer.recovered.lost, writer.recovered.quarantined) == (2, 1, 0)
    assert writer.append(1, [b"next"]) == 2


def test_a_place_that_cannot_be_read_is_told_in_words(bench):
    bench.writer()
    consumer = Consumer(bench.directory, "main", BadSector("consumer-main", range(1)))
    with pytest.raises(PermanentError, match=r"cannot read .*consumer-main.*check the disk"):
        consumer.start()


def test_a_place_that_cannot_be_locked_is_told_in_words(bench):
    class NoLocks(UnsyncedDisk):
        def lock(self, fd: int) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    bench.writer()
    with pytest.raises(PermanentError, match=r"cannot lock .*consumer-main"):
        Consumer(bench.directory, "main", NoLocks()).start()


def test_a_wake_page_that_cannot_be_opened_is_told_in_words(bench):
    bench.writer()
    wake = bench.directory / "wake"
    wake.unlink()
    wake.mkdir()
    with pytest.raises(PermanentError, match=r"cannot open .*wake"):
        bench.reader().wait(0, 1.0)


def test_a_segment_that_cannot_be_opened_is_told_in_words_by_whoever_asks_for_its_index(bench):
    bench.writer().append(1, [b"a"])
    path = bench.segment_paths()[0]
    path.unlink()
    path.symlink_to(path.name)
    reader = bench.reader()
    with pytest.raises((PermanentError, RetryableError), match="cannot read segments"):
        list(reader.unchecked(0, 1))

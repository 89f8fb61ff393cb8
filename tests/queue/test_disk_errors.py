"""A disk that fills up or fails: the caller is told, nothing is half kept, the queue goes on."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import KIB

SETTINGS = {"when_full": "drop_oldest"}


def scenario(writer):
    """Appends, rolls over, splits batches; a failed append is tried again, as callers do."""
    failures = 0
    expected: list[bytes] = []
    for n in range(6):
        batch = [b"%d" % n * 1500, b"", b"%d" % n * 2500]
        try:
            first = writer.append(1, batch)
        except (RetryableError, PermanentError) as error:
            assert str(writer._settings.directory) in str(error)
            assert writer.writing == len(expected)
            failures += 1
            first = writer.append(1, batch)
        assert first == len(expected)
        expected += batch
    return expected, failures


@pytest.mark.parametrize("durability", ["append", "fsync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failure_of_any_one_call_costs_that_append_and_nothing_else(
    new_bench, troubled_disk, failing_at, code, durability
):
    healthy, settings = troubled_disk(failing_at(0)), SETTINGS | {"durability": durability}
    expected, _ = scenario(new_bench("whole").writer(healthy, **settings))
    failed = 0
    for at_call in range(1, healthy.calls + 1):
        bench, disk = new_bench(str(at_call)), troubled_disk(failing_at(at_call, code))
        try:
            writer = bench.writer(disk, **settings)
        except (RetryableError, PermanentError):
            failed += 1
            writer = bench.writer(disk, **settings)
        failed += scenario(writer)[1]
        numbers = (writer.writing, writer.oldest)
        assert bench.records(writer.oldest) == expected[writer.oldest :]
        writer.stop(1.0)
        writer = bench.writer(**settings)
        assert (writer.writing, writer.oldest) == numbers
        assert bench.records(writer.oldest) == expected[writer.oldest :]
        bench.close()
    assert failed == healthy.calls


@pytest.mark.parametrize(
    ("code", "word"), [(errno.ENOSPC, RetryableError), (errno.EIO, PermanentError)]
)
def test_no_space_is_retryable_and_a_failing_disk_is_not(
    bench, troubled_disk, failing_at, code, word
):
    disk = troubled_disk(failing_at(0))
    writer = bench.writer(disk)
    disk.trouble = failing_at(disk.calls + 1, code)
    with pytest.raises(word, match=r"00000\.seg: .*another directory"):
        writer.append(1, [b"x"])
    assert writer.append(1, [b"x"]) == 0


def test_short_writes_are_gone_on_with_until_all_is_written(bench, troubled_disk):
    writer = bench.writer(troubled_disk(lambda call, name: 37))
    payloads = [b"%d" % n * 400 for n in range(5)]
    writer.append(1, payloads)
    assert bench.records() == payloads


def test_a_disk_that_accepts_nothing_is_an_error_and_not_a_loop(bench, troubled_disk, failing_at):
    disk = troubled_disk(failing_at(0))
    writer = bench.writer(disk)
    writer.append(1, [b"kept"])
    disk.trouble = lambda call, name: 0
    with pytest.raises(PermanentError, match="accepted no byte"):
        writer.append(1, [b"x"])
    assert bench.records() == [b"kept"]


class FullDisk:
    """96 KiB, a third of it taken: a real tmpfs where this process may mount one, and everywhere
    a disk that refuses to allocate."""

    def __init__(self, real: bool, place: Path, troubled_disk) -> None:
        self._real, self._place, self._taken = real, place, True
        self.disk = troubled_disk(self._trouble)
        place.mkdir(exist_ok=True)
        if real:
            mount(place)
            (place / "filler").write_bytes(bytes(32 * KIB))

    def free(self) -> None:
        self._taken = False
        (self._place / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        if self._real:
            subprocess.run(["umount", "-l", self._place], check=True)

    def _trouble(self, call: int, name: str) -> None:
        segments = len(list(self._place.glob("queue/*.seg")))
        if name == "allocate" and self._taken and not self._real and segments == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def mount(place: Path) -> None:
    options = ["-t", "tmpfs", "-o", "size=96k", "tmpfs", str(place)]
    subprocess.run(["mount", *options], check=True, capture_output=True)


def may_mount() -> bool:
    with tempfile.TemporaryDirectory() as place:
        try:
            mount(Path(place))
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", place], check=True)
        return True


@pytest.fixture(params=[False, True] if may_mount() else [False], ids=lambda real: f"real={real}")
def full_disk(request, tmp_path, troubled_disk):
    disk = FullDisk(request.param, tmp_path / "small", troubled_disk)
    yield disk
    disk.close()


def test_a_full_disk_refuses_a_new_segment_and_the_queue_goes_on_when_there_is_room(
    new_bench, full_disk
):
    bench = new_bench("small/queue")
    writer = bench.writer(full_disk.disk)
    kept: list[bytes] = []
    with pytest.raises(RetryableError, match=r"No space left.*free space"):
        while True:
            batch = [b"%d" % len(kept) * 4000]
            writer.append(1, batch)
            kept += batch
    assert not list(bench.directory.glob("*.new"))
    assert bench.records() == kept
    assert kept
    full_disk.free()
    writer.append(1, [b"room" * 1000])
    assert bench.records() == [*kept, b"room" * 1000]
    bench.close()


def test_a_directory_that_cannot_be_made_is_named(new_bench, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PermanentError, match=r"cannot create .*file/queue"):
        new_bench("file/queue").writer()

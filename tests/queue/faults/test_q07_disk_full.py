"""Q7: a file system that is really full, and resuming by itself once there is room.

Two of them: a tmpfs and, in a file, an ext4, which runs out in its own way. Where a process may not
mount, the same history runs on a disk that keeps an account and refuses to go over it.
"""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import KIB, MIB

SPACE_BYTES = {"tmpfs": 320 * KIB, "ext4": 4 * MIB, "account": 320 * KIB}
ROUNDS = 3


def run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


def mount(kind: str, place: Path) -> None:
    place.mkdir(exist_ok=True)
    if kind == "tmpfs":
        run("mount", "-t", "tmpfs", "-o", f"size={SPACE_BYTES[kind]}", "tmpfs", place)
    else:
        image = place.with_suffix(".img")
        run("truncate", "-s", SPACE_BYTES[kind], image)
        run("mkfs.ext4", "-q", "-O", "^has_journal", "-m", 0, image)
        run("mount", "-o", "loop", image, place)


def may_mount(kind: str) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "probe"
        try:
            mount(kind, place)
        except (OSError, subprocess.CalledProcessError):
            return False
        run("umount", place)
        return True


class Account:
    """Refuses to allocate above the space there is, counting the filler as the real ones do."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __call__(self, call: int, name: str) -> None:
        used = used_bytes(self.place)
        new = next(self.place.rglob("*.seg.new"), None)
        if name == "allocate" and new and used + 16 * KIB > SPACE_BYTES["account"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(params=["account", *filter(may_mount, ["tmpfs", "ext4"])])
def small_place(request, tmp_path):
    place = tmp_path / "small"
    if request.param == "account":
        place.mkdir()
        yield request.param, place
    else:
        mount(request.param, place)
        yield request.param, place
        run("umount", "-l", place)


def used_bytes(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def fill(place: Path, kind: str) -> Path:
    """Leaves room for two segments or three."""
    status = os.statvfs(place)
    free = status.f_bavail * status.f_frsize
    if kind == "account":
        free = SPACE_BYTES[kind] - used_bytes(place)
    filler = place / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - 48 * KIB)
    return filler


def append_until_full(writer, kept: list[bytes]) -> str:
    """What the refusal says; every append before it was acknowledged."""
    for n in range(10_000):
        batch = [b"%05d" % (len(kept) + at) * 300 for at in range(1 + n % 2)]
        try:
            assert writer.append(1, batch) == len(kept)
        except RetryableError as error:
            return str(error)
        kept += batch
    raise AssertionError("the disk never filled up")


def test_q07_a_full_disk_refuses_loses_nothing_and_resumes_by_itself(
    small_place, new_bench, troubled_disk
):
    kind, place = small_place
    disk = troubled_disk(Account(place) if kind == "account" else lambda call, name: None)
    bench = new_bench("small/queue")
    writer = bench.writer(disk, capacity_bytes=32 * MIB)
    kept: list[bytes] = []
    refusals = 0
    for _ in range(ROUNDS):
        filler = fill(place, kind)
        assert "No space left" in append_until_full(writer, kept)
        for _ in range(5):
            with pytest.raises(RetryableError, match=r"No space left.*nothing was lost"):
                writer.append(1, [b"y" * 4000] * 4)
            refusals += 1
        assert writer.writing == len(kept)
        assert bench.records() == kept
        assert not list(bench.directory.glob("*.new"))
        filler.unlink()
        batch = [b"room again" * 300] * 4
        assert writer.append(1, batch) == len(kept)
        kept += batch
    bench.close()
    assert bench.writer(capacity_bytes=32 * MIB).writing == len(kept)
    assert bench.records() == kept
    assert refusals == ROUNDS * 5


def test_q07_a_queue_on_a_full_disk_restarts_with_all_it_has(small_place, new_bench, troubled_disk):
    kind, place = small_place
    disk = troubled_disk(Account(place) if kind == "account" else lambda call, name: None)
    bench = new_bench("small/queue")
    writer = bench.writer(disk, capacity_bytes=32 * MIB)
    kept: list[bytes] = []
    fill(place, kind)
    append_until_full(writer, kept)
    bench.close()
    writer = bench.writer(disk, capacity_bytes=32 * MIB)
    assert bench.records() == kept
    consumer = bench.consumer()
    consumer.commit(len(kept))
    assert (writer.writing, consumer.committed()) == (len(kept), len(kept))
    bench.close()

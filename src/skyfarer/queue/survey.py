"""Which files of a directory are segments, and which only look like it."""

from __future__ import annotations

import errno
import os
from enum import Enum
from pathlib import Path

from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import PAGE_BYTES, Extent, decode_segment_header
from skyfarer.queue.meta import Meta


class Look(Enum):
    FREE = "no file, or one without a header and without entries"
    WIPED = "no header, but entries: a wipe that was interrupted, unless records belong here"
    GARBLED = "a wrong size, an unreadable page or a header that is not ours"


def survey(disk: Disk, directory: Path, meta: Meta) -> tuple[list[Extent], int]:
    """Extents in order, and how many files were renamed `.corrupt`.

    Losses are not counted here: they are the gaps between extents.
    """
    geometry = meta.geometry
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        looks = {
            position: _look(disk, place, directory, geometry.name(position), meta)
            for position in range(geometry.segments)
        }
    finally:
        os.close(place)
    live = sorted(look for look in looks.values() if isinstance(look, Extent))
    within = range(live[0].number, live[-1].number)[-geometry.segments :] if live else ()
    expected = {number % geometry.segments for number in within}
    corrupt = [
        geometry.path(directory, position)
        for position, look in looks.items()
        if look is Look.GARBLED or (look is Look.WIPED and position in expected)
    ]
    for path in corrupt:
        set_aside(disk, path)
    return live, len(corrupt)


def set_aside(disk: Disk, path: Path) -> None:
    disk.rename(path, path.with_name(path.name + ".corrupt"))


def _look(disk: Disk, place: int, directory: Path, name: str, meta: Meta) -> Extent | Look:
    try:
        fd = os.open(name, os.O_RDWR | os.O_CLOEXEC, dir_fd=place)
    except FileNotFoundError:
        return Look.FREE
    except OSError as error:
        raise disk_error(error, directory / name, "open") from error
    try:
        return _judge(disk, fd, name, meta)
    except OSError as error:
        if error.errno != errno.EIO:
            raise disk_error(error, directory / name, "read") from error
        return Look.GARBLED
    finally:
        os.close(fd)


def _judge(disk: Disk, fd: int, name: str, meta: Meta) -> Extent | Look:
    geometry = meta.geometry
    size = os.fstat(fd).st_size
    if not geometry.payload_offset <= size <= geometry.segment_bytes:
        return Look.GARBLED
    page = disk.pread(fd, PAGE_BYTES, 0)
    header = decode_segment_header(page, meta.queue_id)
    if header is not None and geometry.name(header.number) != name:
        return Look.GARBLED
    if header is not None:
        if size < geometry.segment_bytes:
            # Somebody cut it. What is left of it is good, and the rest is what readers will miss.
            disk.allocate(fd, geometry.segment_bytes)
        return Extent(header.number, header.first)
    if size < geometry.segment_bytes:
        return Look.GARBLED
    if not any(disk.pread(fd, geometry.payload_offset - PAGE_BYTES, PAGE_BYTES)):
        return Look.FREE
    return Look.GARBLED if any(page) else Look.WIPED

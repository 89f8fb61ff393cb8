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
    looks = {
        position: _look(geometry.path(directory, position), meta)
        for position in range(geometry.segments)
    }
    live = sorted(look for look in looks.values() if isinstance(look, Extent))
    within = range(live[0].number, live[-1].number)[-geometry.segments :] if live else ()
    expected = {number % geometry.segments for number in within}
    corrupt = [
        geometry.path(directory, position)
        for position, look in looks.items()
        if look is Look.GARBLED or (look is Look.WIPED and position in expected)
    ]
    for path in corrupt:
        disk.rename(path, path.with_name(path.name + ".corrupt"))
    return live, len(corrupt)


def _look(path: Path, meta: Meta) -> Extent | Look:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Look.FREE
    except OSError as error:
        raise disk_error(error, path, "open") from error
    try:
        return _judge(fd, path, meta)
    except OSError as error:
        if error.errno != errno.EIO:
            raise disk_error(error, path, "read") from error
        return Look.GARBLED
    finally:
        os.close(fd)


def _judge(fd: int, path: Path, meta: Meta) -> Extent | Look:
    geometry = meta.geometry
    if os.fstat(fd).st_size != geometry.segment_bytes:
        return Look.GARBLED
    page = os.pread(fd, PAGE_BYTES, 0)
    header = decode_segment_header(page, meta.queue_id)
    if header is not None:
        at_home = geometry.path(path.parent, header.number) == path
        return Extent(header.number, header.first) if at_home else Look.GARBLED
    if not any(os.pread(fd, geometry.payload_offset - PAGE_BYTES, PAGE_BYTES)):
        return Look.FREE
    return Look.GARBLED if any(page) else Look.WIPED

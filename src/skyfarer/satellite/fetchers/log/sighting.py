"""What the disk shows: the files that match, a file's other name, the copy made of a file."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import translate
from typing import Final, NamedTuple

from skyfarer.base.units import KIB
from skyfarer.satellite.fetchers.log.place import BEFORE_BYTES_MAX, HEAD_BYTES_MAX, Place

LINE_BYTES_MAX: Final = 64 * KIB
SEPARATORS: Final = ".-_"  # before what a rotation adds to a name

FileId = tuple[int, int]


class Sighting(NamedTuple):
    path: str
    file_id: FileId
    size: int
    changed_ns: int


def excluding(patterns: Sequence[str]) -> re.Pattern[str]:
    """Matches the names that one of these globs does."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def sightings(globs: Sequence[str], excluded: re.Pattern[str]) -> Iterator[Sighting]:
    """Regular files, each once, whatever it is called and however many patterns match."""
    seen: set[FileId] = set()
    for pattern in globs:
        for path in glob.iglob(pattern, recursive=True):  # noqa: PTH207 - a Path per file is slow
            if excluded.match(path.rpartition("/")[2]):
                continue
            sighting = look_at(path)
            if sighting is not None and sighting.file_id not in seen:
                seen.add(sighting.file_id)
                yield sighting


def look_at(path: str) -> Sighting | None:
    """None for what is gone, may not be seen, or is no regular file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Sighting(path, (status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def leads_to(path: str, file_id: FileId) -> bool:
    """A file may have several names."""
    seen = look_at(path)
    return seen is not None and seen.file_id == file_id


def line_start(sighting: Sighting) -> int:
    """Where the last line of the file begins, if that is not whole; its end if it is."""
    start = max(0, sighting.size - LINE_BYTES_MAX)
    try:
        with open(sighting.path, "rb") as file:  # noqa: PTH123 - as above
            tail = os.pread(file.fileno(), sighting.size - start, start)
    except OSError:
        return sighting.size
    return start + tail.rfind(b"\n") + 1 if b"\n" in tail else sighting.size


def beside(path: str) -> Iterator[Sighting]:
    """The other files of the directory whose names a rotation may have made of this one's."""
    real = os.path.realpath(path)
    directory = real.rpartition("/")[0]
    try:
        names = os.listdir(directory or "/")  # noqa: PTH208 - as above
    except OSError:
        return
    for name in names:
        other = f"{directory}/{name}"
        if is_rotated_name(real, other):
            sighting = look_at(other)
            if sighting is not None:
                yield sighting


def is_rotated_name(path: str, other: str) -> bool:
    """`app.log.1` and `app-2026-01-01.log` are names that `app.log` gets."""
    return path in original_names(other)


def original_names(path: str) -> Iterator[str]:
    """The paths of which this may be the rotated name."""
    directory, _, name = path.rpartition("/")
    suffix = name.rpartition(".")[2]
    for end in range(1, len(name)):
        if name[end] in SEPARATORS:
            yield f"{directory}/{name[:end]}"
            dated = f"{directory}/{name[:end]}.{suffix}"
            if dated != path:
                yield dated


def is_copy(place: Place, sighting: Sighting) -> bool:
    """Whether this file has what was seen of the place's file, before that one was cut off."""
    if (
        sighting.file_id == place.file_id
        or sighting.size < place.seen_bytes
        or not place.head_bytes
    ):
        return False
    try:
        with open(sighting.path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            return place.is_kept_in(file.fileno())
    except OSError:
        return False


def is_becoming_copy(path: str, size: int, sighting: Sighting) -> bool:
    """Whether all that this file has so far stands at the same place in the one of that path."""
    if not size:
        return False
    end = min(size, sighting.size)
    spans = ((0, min(end, HEAD_BYTES_MAX)), (max(0, end - BEFORE_BYTES_MAX), end))
    try:
        with open(path, "rb") as mine, open(sighting.path, "rb") as other:  # noqa: PTH123 - as above
            fds = mine.fileno(), other.fileno()
            pairs = [[os.pread(fd, b - a, a) for fd in fds] for a, b in spans]
    except OSError:
        return False
    return all(mine == other for mine, other in pairs)

"""A reader's picture of the directory: which segment holds a number, and the few it has mapped."""

from __future__ import annotations

import mmap
import os
import sys
from bisect import bisect_right
from collections import OrderedDict
from pathlib import Path
from typing import Final

from skyfarer.queue.layout import (
    PAGE_BYTES,
    Extent,
    Geometry,
    SegmentHeader,
    decode_segment_header,
)
from skyfarer.queue.meta import Meta
from skyfarer.queue.records import salt_of

NO_BOUND: Final = sys.maxsize


class MappedSegment:
    """Read-only. Lives as long as any view into it, whatever the atlas forgets."""

    def __init__(self, mapped: mmap.mmap, geometry: Geometry, header: SegmentHeader) -> None:
        view = memoryview(mapped)
        self.number = header.number
        self.first = header.first
        self.slots = geometry.slots
        self.salt = salt_of(header.number, header.first)
        self.index = view[geometry.index]
        self.data = view[geometry.payload_offset :]
        self._page = view[:PAGE_BYTES]
        self._header = header
        self._mapped = mapped

    def unchanged(self) -> bool:
        """False once the writer has wiped it for reuse."""
        return decode_segment_header(self._page, self._header.queue_id) == self._header

    def whole(self) -> bool:
        """False once somebody has cut the file: to touch what is gone would end the process."""
        return self._mapped.size() >= len(self._mapped)

    def release_pages(self) -> None:
        """Gives the resident pages back; touched again they come from the page cache."""
        self._mapped.madvise(mmap.MADV_DONTNEED)


class Atlas:
    """May be out of date, never wrong about what it hands out: the caller checks every record."""

    def __init__(self, directory: Path, meta: Meta, mapped_max: int) -> None:
        self._directory = directory
        self._geometry = meta.geometry
        self._queue_id = meta.queue_id
        self._mapped_max = mapped_max
        self._extents: list[Extent] = []
        self._maps: OrderedDict[int, MappedSegment] = OrderedDict()

    def find(self, sequence: int) -> tuple[MappedSegment | None, int]:
        """The segment that should hold `sequence`, if it can be mapped, and the first sequence
        known to lie beyond it."""
        at = self._position(sequence)
        if at == len(self._extents) - 1:
            self._learn()
            at = self._position(sequence)
        beyond = self._extents[at + 1].first if at + 1 < len(self._extents) else NO_BOUND
        return (self._mapped(self._extents[at]) if at >= 0 else None), beyond

    def __len__(self) -> int:
        """How many segments it knows of, mapped or not."""
        return len(self._extents)

    def forget(self) -> None:
        self._extents.clear()
        self._maps.clear()

    def _position(self, sequence: int) -> int:
        return bisect_right(self._extents, sequence, key=lambda extent: extent.first) - 1

    def _learn(self) -> None:
        """Follows the newest known segment; from nothing, looks at every file."""
        if not self._extents:
            found = (self._header(position) for position in range(self._geometry.segments))
            self._extents = sorted(Extent(h.number, h.first) for h in found if h is not None)
        while self._extents:
            number = self._extents[-1].number + 1
            header = self._header(number)
            if header is None or header.number != number:
                return
            self._extents.append(Extent(number, header.first))
            del self._extents[: -self._geometry.segments]  # their files are others by now

    def _header(self, number: int) -> SegmentHeader | None:
        try:
            fd = os.open(self._geometry.path(self._directory, number), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return decode_segment_header(os.pread(fd, PAGE_BYTES, 0), self._queue_id)
        finally:
            os.close(fd)

    def _mapped(self, extent: Extent) -> MappedSegment | None:
        segment = self._maps.get(extent.number)
        if segment is None or not segment.whole():
            segment = self._map(extent)
        if segment is not None:
            self._maps[extent.number] = segment
            self._maps.move_to_end(extent.number)
            while len(self._maps) > self._mapped_max:
                self._maps.popitem(last=False)
        return segment

    def _map(self, extent: Extent) -> MappedSegment | None:
        """The size is looked at first: reading a map beyond the end of a file that somebody cut
        would kill the process. What is left of such a file is read, and the rest is damaged."""
        try:
            with self._geometry.path(self._directory, extent.number).open("rb") as file:
                size = min(os.fstat(file.fileno()).st_size, self._geometry.segment_bytes)
                if size <= self._geometry.payload_offset:
                    return None
                mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            return None
        header = decode_segment_header(mapped[:PAGE_BYTES], self._queue_id)
        if header is None or (header.number, header.first) != extent:
            return None
        return MappedSegment(mapped, self._geometry, header)

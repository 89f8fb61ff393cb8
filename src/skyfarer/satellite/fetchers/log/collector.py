"""One file: what of it is not read yet, and the next block of it, cut into texts.

Between two reads a collector holds nothing but numbers and, mostly, an open file: a line without
its newline, or an event that may go on, is left in the file and read again with what follows it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from skyfarer.base.units import KIB
from skyfarer.satellite.fetchers.log.charset import BOM, Charset
from skyfarer.satellite.fetchers.log.intent import Piece
from skyfarer.satellite.fetchers.log.lines import Cut, Flush
from skyfarer.satellite.fetchers.log.place import UNKNOWN, Place, before_crc
from skyfarer.satellite.fetchers.log.splitting import MARK_BYTES_MAX, AnySplitter, Splitting

# The C library takes larger ones from the kernel and gives them back, each time: 100 page faults.
BLOCK_BYTES: Final = 160 * KIB


class Rewritten(Exception):  # noqa: N818 - an event, told to whoever reads
    """What was read of this file does not stand in it any more: it was cut off, or is another."""

    def __init__(self, collector: Collector) -> None:
        super().__init__(collector.place.path)
        self.collector = collector


@dataclass(frozen=True, slots=True)
class Patience:
    """How long after its last growth an event is complete, and a file that was left is."""

    event_s: float | None
    file_s: float


@dataclass(frozen=True, slots=True)
class Haul:
    """A block's texts and where they come from; without texts, blank lines to be passed over."""

    origin: str
    cut: Cut
    pieces: tuple[Piece, ...]
    before_crc: int


class Collector:
    """Event loop only; every call is short file work. OSError goes through.

    `left_s` is when the file lost its name to another, or all names: it ends some day. `heir` is
    the file that took its name, `before` the one it took it from. `stalled`: it could not be read,
    and is not tried before the next survey; `troubled`: and not because it was renamed meanwhile,
    so that nobody should wait for it.
    """

    def __init__(
        self, place: Place, splitting: Splitting, patience: Patience, bytes_max: int, now_s: float
    ) -> None:
        self.place = place
        self.fd: int | None = None
        self.size = place.offset
        self.grew_s = now_s
        self.left_s: float | None = now_s if place.left else None
        self.present = True
        self.stalled = False
        self.troubled = False
        self.before: Collector | None = None
        self.heir: Collector | None = None
        self._splitting = splitting
        self._patience = patience
        self._large_bytes = max(BLOCK_BYTES, bytes_max + KIB)
        self._splitter: AnySplitter | None = None
        self._charset: Charset | None = None
        self._tried: tuple[int, int, Flush] | None = None

    @property
    def was_cut(self) -> bool:
        return self.size < self.place.seen_bytes

    @property
    def unread_bytes(self) -> int:
        return max(0, self.size - self.place.offset)

    def saw(self, size: int, now_s: float) -> None:
        if size != self.size:
            self.size, self.grew_s = size, now_s

    def due(self, now_s: float) -> bool:
        """Whether a read may bring something: not before it has grown, or waited long enough, and
        not before those files are at their end that come before it."""
        if self.stalled or not self._readable(now_s):
            return False
        before = self.before
        while before is not None:
            if before._readable(now_s) and not before.troubled:
                return False
            before = before.before
        return True

    def fails(self, error: OSError) -> bool:
        """True the first time, if it is worth saying."""
        known, self.stalled = self.troubled, True
        self.troubled = not isinstance(error, FileNotFoundError)
        self.close()
        return self.troubled and not known

    def ended(self, now_s: float) -> bool:
        """Left, read to its end, and quiet for so long that nothing more will come."""
        return self._flush(now_s) is Flush.ALL and not self.unread_bytes

    def open(self) -> None:
        """FileNotFoundError if the path leads to another file by now; Rewritten, and open, if it is
        the same one with other contents."""
        fd = os.open(self.place.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) != self.place.file_id:
                raise FileNotFoundError(f"{self.place.path} is another file by now")
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd
        if not self.place.is_kept_in(fd):
            raise Rewritten(self)

    def can_be_read(self) -> bool:
        """Open, or opened by this; Rewritten as `open` raises it."""
        if self.fd is None:
            try:
                self.open()
            except OSError:
                return False
        return True

    def close(self) -> None:
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def is_itself(self) -> bool:
        """Whether what was read still stands in it; True when it cannot be asked."""
        closed = self.fd is None
        try:
            if self.fd is None:
                self.open()
            assert self.fd is not None
            return self.place.is_kept_in(self.fd)
        except Rewritten:
            return False
        except OSError:
            return True
        finally:
            if closed:
                self.close()

    def restart(self) -> None:
        """The same file from its beginning: not the hole that a writer leaves who goes on where he
        was after the file has been cut."""
        self._splitter = None
        self._tried = None
        self.place.restart(_first_data(self.fd) if self.fd is not None else 0)

    def gave_nothing(self, now_s: float) -> None:
        """It is not due again before something about it has changed."""
        self._tried = (self.place.offset, self.size, self._flush(now_s))

    def read(self, now_s: float) -> Haul | None:
        """The next block, its file open; None when nothing can be cut before it grows or waits.

        A first block goes on where the file before it ended, if that left an event unfinished.
        """
        carried, pieces = self._carried(now_s)
        if carried is None:
            return None
        start = self.place.offset
        for size in (BLOCK_BYTES, self._large_bytes):
            before, own = self._block(size)
            more = len(own) >= size
            cut = self._cut(carried + own, Flush.NOTHING if more else self._flush(now_s))
            if cut.used or not more:
                break
        self.size = max(self.size, start + len(own))
        if not cut.used:
            self.gave_nothing(now_s)
            return None
        known = UNKNOWN if pieces else before_crc(before, own, cut.used)
        mine = Piece(self.place.key, start, len(own), len(own))
        return Haul(self.place.origin, cut, (*pieces, mine), known)

    def _cut(self, block: bytes, flush: Flush) -> Cut:
        assert self._splitter is not None
        cut = self._splitter.split(block, flush)
        if self.place.offset == 0 and cut.texts and cut.texts[0].startswith(BOM):
            cut.texts[0] = cut.texts[0].removeprefix(BOM)
        if cut.texts and cut.texts[0].startswith(b"\0"):
            cut.texts[0] = cut.texts[0].lstrip(b"\0")
        return cut

    def _block(self, size: int) -> tuple[bytes, bytes]:
        """The bytes before the place, which must be as they were, and those from there on."""
        place, fd = self.place, self.fd
        assert fd is not None, "read before open"
        back = place.before_bytes
        data = os.pread(fd, back + size, place.offset - back)
        # After the bytes, so that they are the file's whose beginning this is.
        first = data if back == place.offset else os.pread(fd, place.head_bytes, 0)
        if not place.precedes(data[:back]) or not place.is_head(first):
            raise Rewritten(self)
        if self._splitter is None:
            self._splitter, self._charset = self._splitting.of(first[:MARK_BYTES_MAX])
        return data[:back], data[back:]

    def _carried(self, now_s: float) -> tuple[bytes | None, tuple[Piece, ...]]:
        """What the file before this one ended with, and nobody finished; None if it goes on."""
        old = self.before
        if old is None or not old.unread_bytes or self.place.offset or not old.can_be_read():
            return b"", ()
        _, rest = old._block(self._large_bytes)
        start, length = old.place.offset, len(rest)
        old.saw(max(old.size, start + length), now_s)
        if old._readable(now_s):
            return None, ()
        newline = old._charset.newline if old._charset is not None else b"\n"
        if not old.place.torn and not rest.endswith(newline):
            rest += newline
        return rest, (Piece(old.place.key, start, length, len(rest)),)

    def _readable(self, now_s: float) -> bool:
        if not self.unread_bytes:
            return False
        return self._tried != (self.place.offset, self.size, self._flush(now_s))

    def _flush(self, now_s: float) -> Flush:
        grew_s, heir, patience = self.grew_s, self.heir, self._patience
        if heir is not None and heir.size and not heir.place.offset:
            # What is unfinished here may go on there: the heir's first block tells.
            return Flush.NOTHING
        if self.left_s is not None and now_s - max(grew_s, self.left_s) >= patience.file_s:
            return Flush.ALL
        if patience.event_s is not None and now_s - grew_s >= patience.event_s:
            return Flush.LINES
        return Flush.NOTHING


def _first_data(fd: int) -> int:
    """Where the first byte is that was ever written; 0 for a file without a hole there."""
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0

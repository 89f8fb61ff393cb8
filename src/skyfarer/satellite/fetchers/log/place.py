"""Which file it is, and how far it has been read."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Final

from skyfarer.base.units import KIB
from skyfarer.queue.checksum import crc32c

HEAD_BYTES_MAX: Final = 1 * KIB
BEFORE_BYTES_MAX: Final = 64
UNKNOWN: Final = -1


@dataclass(slots=True)
class Place:
    """A row of the positions. `key` names it there, and is never used twice. `path` is where the
    file is now, `origin` where it was when it was seen first, as its records say.

    `left` once the file has lost its name; `heir` is the key of the one that has it now, and `torn`
    says that the heir goes on in the middle of a line.

    `head_crc` is of the first `head_bytes` of the file, `before_crc` of the up to 64 bytes before
    `offset`: what has been read stays as it was, or it is not this file any more.
    """

    key: int
    path: str
    origin: str
    device: int
    inode: int
    offset: int = 0
    head_bytes: int = 0
    head_crc: int = 0
    before_crc: int = UNKNOWN
    left: bool = False
    heir: int = 0
    torn: bool = False

    @property
    def file_id(self) -> tuple[int, int]:
        return self.device, self.inode

    @property
    def before_bytes(self) -> int:
        return min(self.offset, BEFORE_BYTES_MAX)

    def row(self) -> dict[str, object]:
        return asdict(self)

    @property
    def seen_bytes(self) -> int:
        """How long the file was at least."""
        return max(self.offset, self.head_bytes)

    def is_kept_in(self, fd: int) -> bool:
        """Whether that file has what was seen of this one."""
        back = self.before_bytes
        before = os.pread(fd, back, self.offset - back)
        return self.is_head(os.pread(fd, self.head_bytes, 0)) and self.precedes(before)

    def is_head(self, data: bytes) -> bool:
        """`data` is what a file begins with; True also if it is longer than what is known."""
        return crc32c(data[: self.head_bytes]) == self.head_crc

    def precedes(self, before: bytes) -> bool:
        """`before` is what stands before `offset`."""
        if len(before) != self.before_bytes:
            return False
        return self.before_crc == UNKNOWN or crc32c(before) == self.before_crc

    def learn_head(self, fd: int) -> bool:
        """Takes more of the file's first bytes, while they are few; True if there are more."""
        if self.head_bytes == HEAD_BYTES_MAX:
            return False
        data = os.pread(fd, HEAD_BYTES_MAX, 0)
        if len(data) <= self.head_bytes or not self.is_head(data):
            return False
        self.head_bytes, self.head_crc = len(data), crc32c(data)
        return True

    def restart(self, offset: int = 0) -> None:
        """The same file with other contents."""
        self.offset, self.before_crc = offset, UNKNOWN
        self.head_bytes, self.head_crc = 0, 0


def before_crc(before: bytes, data: bytes, used: int) -> int:
    """Of what stands before the place that is `used` bytes into `data`, itself behind `before`."""
    last = data[max(0, used - BEFORE_BYTES_MAX) : used]
    return crc32c((before + last)[-BEFORE_BYTES_MAX:])

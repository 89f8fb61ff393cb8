"""Where records go that the upstream refuses for good, until somebody sends them again.

    dead-letters/
      00000000000000004711-9ae13c02.json      one letter: its sequence, and the CRC of its payload
        {"time_ms": …, "sequence": …, "kind": …, "reason": "…", "payload": "<base64>"}

Invariants:
- A letter is whole or not there: it is written under another name and then renamed.
- A record parked again, because the process died before the commit, replaces its first letter.
- A letter goes only when it was delivered (`remove`), or when the directory is over its bound:
  then the oldest goes, and is counted. So a replay that dies sends its last letter once more.
- `read` and `remove` need no word with the process that parks; two replays exclude each other.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.base.units import KIB, MIB

log = logging.getLogger(__name__)

DEAD_LETTER_BYTES_MAX = 64 * MIB
_BLOCK_BYTES = 4 * KIB  # what the smallest file takes
_SUFFIX = ".json"
_UNFINISHED = ".unfinished"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """`sequence` numbers it within its pipe's queue."""

    path: Path
    time_ms: int
    sequence: int
    kind: int
    reason: str
    payload: bytes


class DeadLetters:
    """Parking blocks for one small file. Nothing is created before the first record is parked."""

    def __init__(self, path: Path, clock: Clock, bytes_max: int = DEAD_LETTER_BYTES_MAX) -> None:
        self.path = path
        self.given_up = 0
        self._clock = clock
        self._bytes_max = bytes_max
        self._letters: dict[str, int] | None = None  # name → bytes, oldest first
        self._used_bytes = 0
        self._overflowing = False

    def park(self, sequence: int, kind: int, reason: str, payload: bytes | memoryview) -> None:
        """The letter is in its file on return (it survives a killed process); OSError if not."""
        entry = {
            "time_ms": self._clock.now_ms(),
            "sequence": sequence,
            "kind": kind,
            "reason": reason,
            "payload": b2a_base64(payload, newline=False).decode("ascii"),
        }
        text = json.dumps(entry).encode() + b"\n"
        name = f"{sequence:020d}-{crc32(payload):08x}{_SUFFIX}"
        letters = self._opened()
        self._make_room(letters, _taken_bytes(len(text)))
        unfinished = self.path / _UNFINISHED
        unfinished.write_bytes(text)
        unfinished.replace(self.path / name)
        self._used_bytes += _taken_bytes(len(text)) - letters.pop(name, 0)
        letters[name] = _taken_bytes(len(text))

    def _opened(self) -> dict[str, int]:
        """What lies there, looked up once; a replay may have removed some of it since."""
        if self._letters is None:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._letters = {
                path.name: _taken_bytes(path.stat().st_size) for path in _files(self.path)
            }
            self._used_bytes = sum(self._letters.values())
        return self._letters

    def _make_room(self, letters: dict[str, int], wanted_bytes: int) -> None:
        if wanted_bytes > self._bytes_max:
            raise OSError(errno.EFBIG, f"a letter of {wanted_bytes} bytes is over the bound")
        given_up = self.given_up
        while letters and self._used_bytes + wanted_bytes > self._bytes_max:
            oldest = next(iter(letters))
            with suppress(FileNotFoundError):
                (self.path / oldest).unlink()
                self.given_up += 1
            self._used_bytes -= letters.pop(oldest)
        if self.given_up > given_up and not self._overflowing:
            log.error("%s is full: its oldest letters are given up", self.path)
        self._overflowing = self.given_up > given_up


def read(path: Path) -> Iterator[DeadLetter]:
    """Every letter of that directory, oldest first; one that cannot be read is left and logged."""
    for file in _files(path):
        try:
            entry = json.loads(file.read_bytes())
            payload = a2b_base64(entry["payload"], strict_mode=True)
            number = (int(entry["time_ms"]), int(entry["sequence"]), int(entry["kind"]))
            letter = DeadLetter(file, *number, str(entry["reason"]), payload)
        except FileNotFoundError:
            continue
        except (OSError, NotBase64, ValueError, KeyError, TypeError) as failure:
            log.error("%s is no dead letter, and is left where it is: %s", file, failure)
        else:
            yield letter


def remove(letter: DeadLetter) -> None:
    """To be called when it was delivered, and not before. Safe twice."""
    letter.path.unlink(missing_ok=True)


@contextmanager
def replaying(path: Path) -> Iterator[None]:
    """Held while letters are read, sent and removed; PermanentError if another process does so."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as failure:
        os.close(directory)
        raise PermanentError(f"{path} is being replayed by another process") from failure
    try:
        yield
    finally:
        os.close(directory)


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.glob(f"*{_SUFFIX}") if file.name[:1].isdigit())


def _taken_bytes(size: int) -> int:
    return -(-size // _BLOCK_BYTES) * _BLOCK_BYTES

"""The keys of `log-fetcher`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from skyfarer.base.units import KIB, MIB
from skyfarer.satellite.fetchers.log.charset import check_encoding
from skyfarer.satellite.notation import seconds

BYTES_MAX = 1 * MIB
FILES_MAX = 100_000
OPEN_FILES_MAX = 10_000


@dataclass(frozen=True)
class MultilineConfig:
    """Which lines belong together; exactly one of the two patterns.

    A pattern is a regular expression, held against the beginning of each line.
    """

    first_line: str = ""  # a line that matches begins an event
    continuation: str = ""  # a line that matches belongs to the event before it
    timeout: str = "2s"  # an event ends when its file has not grown for this long
    max_lines: int = 500  # what is longer becomes several events, and is counted

    def __post_init__(self) -> None:
        if bool(self.first_line) == bool(self.continuation):
            raise ValueError("one of first_line and continuation must be given")
        try:
            self.boundary()
        except re.error as error:
            raise ValueError(f"its pattern is no regular expression: {error}") from error
        if seconds(self.timeout) <= 0 or self.max_lines < 2:
            raise ValueError("timeout must be above 0, max_lines at least 2")

    def boundary(self) -> re.Pattern[bytes]:
        """Matches the newline before a line that begins an event."""
        if self.first_line:
            return re.compile(rb"\n(?=" + self.first_line.encode() + rb")", re.MULTILINE)
        return re.compile(rb"\n(?!" + self.continuation.encode() + rb")", re.MULTILINE)


@dataclass(frozen=True)
class LogFetcherConfig:
    paths: tuple[str, ...]  # globs, ** for any depth; a rotated name may match too
    service: str  # whose logs these are
    service_instance: str = ""
    layer: str = "GENERAL"
    tags: dict[str, str] = field(default_factory=dict)  # for every record, beside its file's path
    exclude: tuple[str, ...] = ("*.gz", "*.bz2", "*.xz", "*.zst", "*.zip")  # by file name
    encoding: str = "utf-8"  # what is not of it is replaced, and counted
    multiline: MultilineConfig | None = None
    start_at: Literal["beginning", "end"] = "beginning"  # of files there at the very first start
    interval: str = "1s"  # how often files are looked at
    close_after: str = "5s"  # how long a rotated file is still watched after its end
    max_bytes: int = 256 * KIB  # of a record; what is longer becomes several, and is counted
    max_files: int = 1000  # more than this many are not read, and it is said
    max_open_files: int = 128

    def __post_init__(self) -> None:
        if not self.paths or not self.service:
            raise ValueError("paths and service must not be empty")
        check_encoding(self.encoding)
        if seconds(self.interval) <= 0 or seconds(self.close_after) <= 0:
            raise ValueError("interval and close_after must be above 0")
        if not KIB <= self.max_bytes <= BYTES_MAX:
            raise ValueError(f"max_bytes must be from {KIB} to {BYTES_MAX}")
        if not 1 <= self.max_files <= FILES_MAX:
            raise ValueError(f"max_files must be from 1 to {FILES_MAX}")
        if not 2 <= self.max_open_files <= OPEN_FILES_MAX:
            raise ValueError(f"max_open_files must be from 2 to {OPEN_FILES_MAX}")

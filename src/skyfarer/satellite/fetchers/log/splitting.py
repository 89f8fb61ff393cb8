"""The splitter for a file: it depends on the configuration and, with UTF-16, on the file's mark."""

from __future__ import annotations

from typing import Protocol

from skyfarer.satellite.fetchers.log.charset import UTF_8, Charset, charset_of
from skyfarer.satellite.fetchers.log.config import LogFetcherConfig
from skyfarer.satellite.fetchers.log.lines import Bounds, Cut, Flush, Splitter
from skyfarer.satellite.fetchers.log.transcode import TranscodingSplitter

MARK_BYTES_MAX = 4


class AnySplitter(Protocol):
    def split(self, block: bytes, flush: Flush) -> Cut: ...


class Splitting:
    """Pure; splitters have no state and are shared by files."""

    def __init__(self, config: LogFetcherConfig) -> None:
        multiline = config.multiline
        bounds = Bounds(config.max_bytes, multiline.max_lines if multiline else 1)
        self._encoding = config.encoding
        self._bytes_max = config.max_bytes
        self._plain = Splitter(bounds, multiline.boundary() if multiline else None)
        self._made: dict[str, AnySplitter] = {UTF_8: self._plain}

    def of(self, first_bytes: bytes) -> tuple[AnySplitter, Charset]:
        """`first_bytes` are the file's, up to `MARK_BYTES_MAX`."""
        charset = charset_of(self._encoding, first_bytes)
        if charset.codec not in self._made:
            made = TranscodingSplitter(charset, self._plain, self._bytes_max)
            self._made[charset.codec] = made
        return self._made[charset.codec], charset

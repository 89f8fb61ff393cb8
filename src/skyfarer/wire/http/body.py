"""The body of one HTTP request while it arrives: inflated, and bounded before it is held."""

from __future__ import annotations

import zlib
from typing import Final

from skyfarer.wire.http.answers import Refused

RETRY_AFTER: Final = (("retry-after", "1"),)
ACCEPTED: Final = (("accept-encoding", "gzip, deflate"),)
# zlib's word for "gzip or deflate, whichever its first bytes are".
_WINDOW_BITS: Final = 47
_PLAIN: Final = ("", "identity")
_DEFLATED: Final = ("gzip", "x-gzip", "deflate")


class Held:
    """Bytes of all bodies of a server that are not kept yet: each is bounded, but there are many
    connections."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes = 0

    def add(self, size: int) -> None:
        """Refused when that is too much; it counts all the same, until it is given back."""
        self.bytes += size
        if self.bytes > self._bytes_max:
            raise Refused(503, "too many requests are arriving at once, try again", RETRY_AFTER)

    def give_back(self, size: int) -> None:
        self.bytes -= size


class Body:
    """`bytes_max` holds for what arrives and for what it inflates to, which is cut off there while
    it is inflated. `close` must be called when the body is kept or given up."""

    def __init__(self, encoding: str, bytes_max: int, held: Held) -> None:
        if encoding not in _PLAIN and encoding not in _DEFLATED:
            raise Refused(
                415, f"content-encoding {encoding!r} is not known here; use gzip or none", ACCEPTED
            )
        self._inflater = None if encoding in _PLAIN else zlib.decompressobj(_WINDOW_BITS)
        self._bytes_max = bytes_max
        self._held = held
        self._chunks: list[bytes] = []
        self._received = self._size = 0

    def expect(self, size: int) -> None:
        """What the request announces: a refusal need not wait for the bytes."""
        if size > self._bytes_max:
            raise self._too_large("is")

    def feed(self, data: bytes) -> None:
        self._received += len(data)
        self.expect(self._received)
        chunk = data if self._inflater is None else self._inflate(self._inflater, data)
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._held.add(len(chunk))

    def end(self) -> bytes:
        inflater = self._inflater
        if inflater is not None and (not inflater.eof or inflater.unused_data):
            raise Refused(400, "the body cannot be inflated: it is cut short or followed by more")
        self._chunks = [b"".join(self._chunks)]
        return self._chunks[0]

    def close(self) -> None:
        self._held.give_back(self._size)
        self._chunks, self._size = [], 0

    def _inflate(self, inflater: zlib._Decompress, data: bytes) -> bytes:
        # One byte more than allowed, so that "exactly at the bound" and "beyond" differ.
        room = self._bytes_max - self._size + 1
        try:
            chunk = inflater.decompress(data, room)
        except zlib.error as error:
            raise Refused(
                400, "the body cannot be inflated as its content-encoding says"
            ) from error
        if len(chunk) == room:
            raise self._too_large("inflates to")
        return chunk

    def _too_large(self, how: str) -> Refused:
        return Refused(
            413, f"the body {how} more than {self._bytes_max} bytes; send less in one request"
        )

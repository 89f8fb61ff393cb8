"""The body of one HTTP request while it arrives: inflated, and bounded before it is held."""

from __future__ import annotations

from typing import Final

from skyfarer.wire.http.answers import Refused
from skyfarer.wire.http.inflating import Inflater, inflater

RETRY_AFTER: Final = (("retry-after", "1"),)


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
        self._inflater = inflater(encoding)
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
        if self._inflater is not None and not self._inflater.whole:
            raise Refused(400, "the body cannot be inflated: it is cut short or followed by more")
        self._chunks = [b"".join(self._chunks)]
        return self._chunks[0]

    def close(self) -> None:
        self._held.give_back(self._size)
        self._chunks, self._size = [], 0

    def _inflate(self, inflater: Inflater, data: bytes) -> bytes:
        # One byte more than allowed, so that "exactly at the bound" and "beyond" differ.
        room = self._bytes_max - self._size + 1
        chunk = inflater.inflate(data, room)
        if len(chunk) == room:
            raise self._too_large("inflates to")
        return chunk

    def _too_large(self, how: str) -> Refused:
        return Refused(
            413, f"the body {how} more than {self._bytes_max} bytes; send less in one request"
        )

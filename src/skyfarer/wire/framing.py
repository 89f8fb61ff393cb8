"""gRPC messages inside the DATA of one call.

    ┌──────────────┬──────────────────┬─────────────┐
    │ compressed 1 │ length 4, big e. │ message ... │   repeated; may start and end anywhere in
    └──────────────┴──────────────────┴─────────────┘   a DATA frame and span many of them

A splitter holds at most one unfinished message: the bytes received of it, never the room its
prefix announces, so a length that lies costs nothing. The size is judged when the prefix is read,
and an inflated message is cut off at the same bound while it is inflated.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from skyfarer.base.units import KIB
from skyfarer.wire.status import Status, StatusError

_PREFIX: Final = Struct(">BI")
PREFIX_BYTES: Final = 5
_unpack: Final = _PREFIX.unpack_from
BLOCK_BYTES: Final = 256 * KIB

# zlib's words for the two container formats that gRPC calls gzip and deflate.
_WINDOW_BITS: Final = {b"gzip": 31, b"deflate": 15}
ENCODINGS: Final = b"identity,deflate,gzip"


class Splitter:
    """Splits the DATA of one call into messages; one per call, fed in order.

    `encoding` is the call's grpc-encoding. StatusError for an encoding we do not know.
    """

    __slots__ = ("_bytes_max", "_need", "_partial", "_window_bits")

    def __init__(self, bytes_max: int, encoding: bytes = b"identity") -> None:
        if encoding != b"identity" and encoding not in _WINDOW_BITS:
            raise StatusError(Status.UNIMPLEMENTED, "grpc-encoding is not supported")
        self._bytes_max = bytes_max
        self._window_bits = _WINDOW_BITS.get(encoding)
        self._partial = bytearray()
        self._need = PREFIX_BYTES

    @property
    def inflates(self) -> bool:
        return self._window_bits is not None

    @property
    def held_bytes(self) -> int:
        """Of the unfinished message; not 0 at the end of a call means that it was cut short."""
        return len(self._partial)

    def feed(self, data: bytes, into: list[bytes]) -> None:
        """Appends the messages that `data` completes to `into`.

        StatusError ends the call: those completed before it are in `into`, and the splitter must
        not be fed again.
        """
        at = self._complete_partial(data, into) if self._partial else 0
        end, bytes_max, append, unpack = len(data), self._bytes_max, into.append, _unpack
        while at + PREFIX_BYTES <= end:
            compressed, length = unpack(data, at)
            if length > bytes_max:
                raise self._too_large(length)
            start = at + PREFIX_BYTES
            stop = start + length
            if stop > end:
                self._need = PREFIX_BYTES + length
                break
            message = data[start:stop]
            append(self._inflate(compressed, message) if compressed else message)
            at = stop
        if at < end:
            self._partial += data[at:]

    def _complete_partial(self, data: bytes, into: list[bytes]) -> int:
        """Finishes the held message if `data` can; returns where in `data` the next one starts."""
        partial, at = self._partial, 0
        if len(partial) < PREFIX_BYTES:
            at = PREFIX_BYTES - len(partial)
            partial += data[:at]
            if len(partial) < PREFIX_BYTES:
                return len(data)
            length = _PREFIX.unpack_from(partial)[1]
            if length > self._bytes_max:
                raise self._too_large(length)
            self._need = PREFIX_BYTES + length
        stop = at + self._need - len(partial)
        partial += data[at:stop]
        if len(partial) < self._need:
            return len(data)
        message = bytes(memoryview(partial)[PREFIX_BYTES:])
        into.append(self._inflate(partial[0], message) if partial[0] else message)
        self._partial = bytearray()
        self._need = PREFIX_BYTES
        return stop

    def _inflate(self, compressed: int, message: bytes) -> bytes:
        if compressed != 1 or self._window_bits is None:
            raise StatusError(Status.INTERNAL, "compressed flag set without a grpc-encoding")
        inflater = zlib.decompressobj(self._window_bits)
        try:
            # One byte more than allowed, so that "exactly at the bound" and "beyond" differ.
            inflated = inflater.decompress(message, self._bytes_max + 1)
        except zlib.error as error:
            raise StatusError(Status.INTERNAL, "message cannot be inflated") from error
        if len(inflated) > self._bytes_max:
            raise self._too_large(None)
        if not inflater.eof or inflater.unused_data:
            raise StatusError(Status.INTERNAL, "message cannot be inflated")
        return inflated

    def _too_large(self, length: int | None) -> StatusError:
        size = f"of {length} bytes" if length is not None else "inflates and"
        return StatusError(
            Status.RESOURCE_EXHAUSTED, f"message {size} exceeds the limit of {self._bytes_max}"
        )


def prefixed(message: bytes) -> bytes:
    return _PREFIX.pack(0, len(message)) + message


def blocks(messages: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Messages with their prefixes, packed into few large blocks: one copy, made as it is sent."""
    pieces: list[bytes | memoryview] = []
    size = 0
    for message in messages:
        pieces += (_PREFIX.pack(0, len(message)), message)
        size += PREFIX_BYTES + len(message)
        if size >= BLOCK_BYTES:
            yield b"".join(pieces)
            pieces.clear()
            size = 0
    if pieces:
        yield b"".join(pieces)

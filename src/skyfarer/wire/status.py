"""gRPC status codes: how they travel in trailers, and how they meet our two words for failure.

The receiving side turns an error of the queue into a status; the sending side turns a status into
`RetryableError` or `PermanentError`. A status is permanent only if the same bytes can never be
taken: a refused token is retryable, since an operator may still put it right.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from h2.errors import ErrorCodes

from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError

MESSAGE_BYTES_MAX: Final = 1024  # of grpc-message, before encoding: a header, not a report


class Status(IntEnum):
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class StatusError(Exception):
    """A call ends with this status; never leaves the room."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


PERMANENT: Final = frozenset(
    {
        Status.INVALID_ARGUMENT,
        Status.NOT_FOUND,
        Status.ALREADY_EXISTS,
        Status.FAILED_PRECONDITION,
        Status.OUT_OF_RANGE,
        Status.UNIMPLEMENTED,
        Status.DATA_LOSS,
    }
)

# A proxy that knows no gRPC answers with a bare HTTP status; the table is gRPC's own, but for 404,
# there UNIMPLEMENTED: a wrong route can be put right, and until then no record may be given up.
_OF_HTTP: Final = {
    b"400": Status.INTERNAL,
    b"401": Status.UNAUTHENTICATED,
    b"403": Status.PERMISSION_DENIED,
    b"404": Status.UNAVAILABLE,
    b"429": Status.UNAVAILABLE,
    b"502": Status.UNAVAILABLE,
    b"503": Status.UNAVAILABLE,
    b"504": Status.UNAVAILABLE,
}

_OF_RESET: Final = {
    ErrorCodes.REFUSED_STREAM: Status.UNAVAILABLE,
    ErrorCodes.CANCEL: Status.CANCELLED,
    ErrorCodes.ENHANCE_YOUR_CALM: Status.RESOURCE_EXHAUSTED,
    ErrorCodes.INADEQUATE_SECURITY: Status.PERMISSION_DENIED,
}


def of_http(code: bytes) -> Status:
    return _OF_HTTP.get(code, Status.UNKNOWN)


def of_reset(code: ErrorCodes | int | None) -> Status:
    return _OF_RESET.get(code, Status.INTERNAL) if isinstance(code, ErrorCodes) else Status.INTERNAL


def of_trailer(value: bytes | None) -> Status:
    """A missing or unknown number is UNKNOWN: the peer ended the call, but did not say how."""
    try:
        return Status(int(value)) if value is not None else Status.UNKNOWN
    except ValueError:
        return Status.UNKNOWN


def of_error(error: Exception) -> StatusError:
    """What a caller is told when its bytes could not be kept."""
    if isinstance(error, StatusError):
        return error
    if isinstance(error, RetryableError):
        return StatusError(Status.RESOURCE_EXHAUSTED, str(error))
    if isinstance(error, PermanentError):
        return StatusError(Status.INVALID_ARGUMENT, str(error))
    return StatusError(Status.INTERNAL, "internal error")


def to_error(status: Status, message: str, what: str) -> SkyfarerError:
    """The error for a call `what` that ended with anything but OK."""
    text = f"{what}: {status.name}: {message}" if message else f"{what}: {status.name}"
    return PermanentError(text) if status in PERMANENT else RetryableError(text)


def encode_message(message: str) -> bytes:
    """Percent-encoded UTF-8, printable ASCII kept, as gRPC asks of `grpc-message`."""
    raw = message.encode("utf-8", "replace")[:MESSAGE_BYTES_MAX]
    return quote_from_bytes(raw, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}").encode("ascii")


def decode_message(value: bytes) -> str:
    return unquote_to_bytes(value).decode("utf-8", "replace")

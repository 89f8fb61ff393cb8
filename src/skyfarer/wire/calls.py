"""One call at the receiving end: what its headers ask for, and how its answer is written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from enum import Enum
from typing import Final

from h2.errors import ErrorCodes

from skyfarer.wire.framing import ENCODINGS, Splitter, prefixed
from skyfarer.wire.http2 import Http2
from skyfarer.wire.rpc import BY_PATH, Handling, Rpc, Streaming
from skyfarer.wire.status import Status, StatusError, encode_message

HEALTH_CHECK: Final = b"/grpc.health.v1.Health/Check"
UNKNOWN_RPC: Final = "unknown"
# grpc.health.v1.HealthCheckResponse, field 1: the enum value SERVING or NOT_SERVING.
SERVING: Final = b"\x08\x01"
NOT_SERVING: Final = b"\x08\x02"

_KEPT: Final = {
    path.encode(): rpc for path, rpc in BY_PATH.items() if rpc.handling is Handling.KEEP
}
_NAMES: Final = {
    HEALTH_CHECK: HEALTH_CHECK.decode(),
    **{path.encode(): path for path in BY_PATH},
}
_TIMEOUT_UNITS_S: Final = {
    b"H": 3600.0,
    b"M": 60.0,
    b"S": 1.0,
    b"m": 1e-3,
    b"u": 1e-6,
    b"n": 1e-9,
}
_TIMEOUT_DIGITS_MAX: Final = 8

Header = tuple[bytes, bytes]
_RESPONSE: Final[list[Header]] = [
    (b":status", b"200"),
    (b"content-type", b"application/grpc"),
]
_TRAILERS_OK: Final[list[Header]] = [(b"grpc-status", b"0")]


class Sent(Enum):
    """BLOCKED: the peer has left no window for the body; nothing was written, try again later."""

    DONE = 0
    BLOCKED = 1


class HttpError(StatusError):
    """The peer does not speak gRPC: it gets an HTTP status, as gRPC's own servers answer."""

    def __init__(self, code: bytes, message: str) -> None:
        super().__init__(Status.UNKNOWN, message)
        self.code = code


class RefusedError(StatusError):
    """The call was never begun: reset so that the client knows it may send it elsewhere."""


class Call:
    """`rpc` is the row whose messages are kept; None for a call that is answered here."""

    __slots__ = (
        "counted_bytes",
        "error",
        "half_closed",
        "messages",
        "name",
        "response",
        "rpc",
        "splitter",
        "stream_id",
        "timeout_s",
        "timer",
    )

    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id
        self.name = UNKNOWN_RPC
        self.rpc: Rpc | None = None
        self.splitter: Splitter | None = None
        self.messages = 0
        self.counted_bytes = 0
        self.half_closed = False
        self.response: bytes | None = None
        self.error: StatusError | None = None
        self.timeout_s: float | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def decided(self) -> bool:
        return self.response is not None or self.error is not None

    def read_headers(self, headers: Iterable[Header], message_bytes_max: int) -> None:
        """StatusError when the call can only be refused."""
        fields = dict(headers)
        path = fields.get(b":path", b"")
        self.name = _NAMES.get(path, UNKNOWN_RPC)
        if fields.get(b":method") != b"POST":
            raise HttpError(b"405", "method is not POST")
        if not fields.get(b"content-type", b"").startswith(b"application/grpc"):
            raise HttpError(b"415", "content-type is not application/grpc")
        self.rpc = _KEPT.get(path)
        if self.rpc is None and path != HEALTH_CHECK:
            raise StatusError(Status.UNIMPLEMENTED, f"unknown method {path.decode('latin-1')}")
        self.timeout_s = _timeout_s(fields.get(b"grpc-timeout"))
        self.splitter = Splitter(message_bytes_max, fields.get(b"grpc-encoding", b"identity"))

    def count(self, messages: int) -> None:
        """StatusError when a call that carries one message carries more."""
        self.messages += messages
        if self.messages > 1 and (self.rpc is None or self.rpc.streaming is Streaming.UNARY):
            raise StatusError(Status.INTERNAL, "more than one message in a unary call")

    def check_ended(self) -> None:
        """StatusError when the client ended the call before its messages were whole."""
        if self.splitter is not None and self.splitter.held_bytes:
            raise StatusError(Status.INTERNAL, "the last message was cut short")
        if self.messages == 0 and (self.rpc is None or self.rpc.streaming is Streaming.UNARY):
            raise StatusError(Status.INTERNAL, "no message in a unary call")

    def write_answer(self, http2: Http2) -> Sent:
        """Headers, one message and trailers, or trailers alone when the call failed."""
        if isinstance(self.error, RefusedError):
            http2.reset_stream(self.stream_id, ErrorCodes.REFUSED_STREAM)
            return Sent.DONE
        if self.error is not None:
            http2.send_headers(self.stream_id, _refusal(self.error), end_stream=True)
            if not self.half_closed:
                http2.reset_stream(self.stream_id, ErrorCodes.NO_ERROR)
            return Sent.DONE
        body = prefixed(self.response or b"")
        if http2.local_flow_control_window(self.stream_id) < len(body):
            return Sent.BLOCKED
        http2.send_headers(self.stream_id, _RESPONSE)
        http2.send_data(self.stream_id, body)
        http2.send_headers(self.stream_id, _TRAILERS_OK, end_stream=True)
        return Sent.DONE


def _refusal(error: StatusError) -> list[Header]:
    if isinstance(error, HttpError):
        return [(b":status", error.code), (b"grpc-message", encode_message(error.message))]
    return [
        *_RESPONSE,
        (b"grpc-accept-encoding", ENCODINGS),
        (b"grpc-status", b"%d" % error.status),
        (b"grpc-message", encode_message(error.message)),
    ]


def _timeout_s(value: bytes | None) -> float | None:
    if value is None:
        return None
    digits, unit_s = value[:-1], _TIMEOUT_UNITS_S.get(value[-1:])
    if unit_s is None or not digits.isdigit() or len(digits) > _TIMEOUT_DIGITS_MAX:
        raise StatusError(Status.INTERNAL, "malformed grpc-timeout")
    return int(digits) * unit_s

"""One call at the receiving end: what its headers ask for, and how its answer is written."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Final

from h2.errors import ErrorCodes

from skyfarer.wire.framing import ENCODINGS, Splitter, prefixed
from skyfarer.wire.http2 import Http2
from skyfarer.wire.identity import Identity
from skyfarer.wire.metadata import Header
from skyfarer.wire.numbering import PRODUCER_HEADER, Numbering
from skyfarer.wire.routes import Route, Routes
from skyfarer.wire.rpc import BY_PATH, Streaming
from skyfarer.wire.status import Status, StatusError, encode_message

if TYPE_CHECKING:
    from skyfarer.wire.passage import Passage
    from skyfarer.wire.tokens import Tokens

HEALTH_CHECK: Final = b"/grpc.health.v1.Health/Check"
UNKNOWN_RPC: Final = "unknown"
# grpc.health.v1.HealthCheckResponse, field 1: the enum value SERVING or NOT_SERVING.
SERVING: Final = b"\x08\x01"
NOT_SERVING: Final = b"\x08\x02"

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

_RESPONSE: Final[list[Header]] = [
    (b":status", b"200"),
    (b"content-type", b"application/grpc"),
]
_TRAILERS_OK: Final[list[Header]] = [(b"grpc-status", b"0")]


class Sent(Enum):
    """BLOCKED: the peer has left no window for the rest of the body; try again later."""

    DONE = 0
    BLOCKED = 1


class HttpError(StatusError):
    """The peer does not speak gRPC: it gets an HTTP status, as gRPC's own servers answer, and a
    sentence; both when its request has ended, since that is when such a peer begins to listen."""

    def __init__(self, code: bytes, message: str) -> None:
        super().__init__(Status.UNKNOWN, message)
        self.code = code


class RefusedError(StatusError):
    """The call was never begun: reset so that the client knows it may send it elsewhere."""


class Call:
    """`route` says where its messages go; None for a call that is answered here.

    `body` is what is still to be written of the answer; nothing follows it once the call is
    `complete`. `passage` is there if the call is passed on, `numbering` if it says which records
    it carries. `moved_at` is the sweep before which a message of it was last complete.
    """

    __slots__ = (
        "answering",
        "body",
        "complete",
        "counted_bytes",
        "error",
        "half_closed",
        "identity",
        "messages",
        "moved_at",
        "name",
        "numbering",
        "passage",
        "route",
        "splitter",
        "stream_id",
        "timeout_s",
        "timer",
        "unary",
    )

    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id
        self.name = UNKNOWN_RPC
        self.route: Route | None = None
        self.unary = True
        self.splitter: Splitter | None = None
        self.identity: Identity | None = None
        self.numbering: Numbering | None = None
        self.passage: Passage | None = None
        self.messages = 0
        self.counted_bytes = 0
        self.moved_at = 0
        self.half_closed = False
        self.answering = False
        self.body: bytes | memoryview = b""
        self.complete = False
        self.error: StatusError | None = None
        self.timeout_s: float | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def decided(self) -> bool:
        return self.complete or self.error is not None

    @property
    def held_bytes(self) -> int:
        """Of a message that is not complete yet."""
        return self.splitter.held_bytes if self.splitter is not None else 0

    def read_headers(
        self,
        headers: list[Header],
        routes: Routes,
        message_bytes_max: int,
        tokens: Tokens | None = None,
    ) -> None:
        """StatusError when the call can only be refused."""
        fields = dict(headers)
        path = fields.get(b":path", b"")
        self.name = _NAMES.get(path, UNKNOWN_RPC)
        if tokens is not None and path != HEALTH_CHECK:
            _check_token(fields, tokens)
        if fields.get(b":method") != b"POST":
            raise HttpError(b"405", "method is not POST")
        if not fields.get(b"content-type", b"").startswith(b"application/grpc"):
            raise HttpError(b"415", "content-type is not application/grpc")
        route = self.route = routes.find(path)
        if route is not None:
            self.unary = route.rpc.streaming is Streaming.UNARY
            if route.rpc.identity and route.lane is not None:
                self.identity = Identity(route.rpc.identity)
            if PRODUCER_HEADER in fields:
                self.numbering = Numbering.of_headers(fields)
        elif path != HEALTH_CHECK:
            raise StatusError(Status.UNIMPLEMENTED, f"unknown method {path.decode('latin-1')}")
        self.timeout_s = _timeout_s(fields.get(b"grpc-timeout"))
        self.splitter = Splitter(message_bytes_max, fields.get(b"grpc-encoding", b"identity"))

    def count(self, messages: int) -> None:
        """StatusError when a call that carries one message carries more."""
        self.messages += messages
        if self.unary and self.messages > 1:
            raise StatusError(Status.INTERNAL, "more than one message in a unary call")

    def check_ended(self) -> None:
        """StatusError when the client ended the call before its messages were whole."""
        if self.held_bytes:
            raise StatusError(Status.INTERNAL, "the last message was cut short")
        if self.unary and self.messages == 0:
            raise StatusError(Status.INTERNAL, "no message in a unary call")

    def answer(self, message: bytes) -> None:
        """The one answer of the call."""
        self.body = prefixed(message)
        self.complete = True

    def write(self, http2: Http2) -> Sent:
        """What can be written of the answer; with its end, if it has one."""
        if isinstance(self.error, HttpError):
            return self._write_http(self.error, http2)
        if self.error is not None:
            return self._write_error(self.error, http2)
        if self._write_body(_RESPONSE, http2) is Sent.BLOCKED:
            return Sent.BLOCKED
        if self.complete:
            trailers = _TRAILERS_OK if self.answering else [*_RESPONSE, *_TRAILERS_OK]
            self._write_end(trailers, http2)
        return Sent.DONE

    def _write_body(self, head: list[Header], http2: Http2) -> Sent:
        stream_id, body = self.stream_id, self.body
        while body:
            room = min(http2.local_flow_control_window(stream_id), http2.max_outbound_frame_size)
            if room <= 0:
                self.body = body
                return Sent.BLOCKED
            if not self.answering:
                self.answering = True
                http2.send_headers(stream_id, head)
            if room >= len(body):
                http2.send_data(stream_id, body)
                break
            body = memoryview(body)
            http2.send_data(stream_id, body[:room])
            body = body[room:]
        self.body = b""
        return Sent.DONE

    def _write_http(self, error: HttpError, http2: Http2) -> Sent:
        if not self.answering:
            self.body = error.message.encode() + b"\n"
        head = [(b":status", error.code), (b"content-type", b"text/plain; charset=utf-8")]
        if self._write_body(head, http2) is Sent.BLOCKED:
            return Sent.BLOCKED
        http2.end_stream(self.stream_id)
        if not self.half_closed:
            http2.reset_stream(self.stream_id, ErrorCodes.NO_ERROR)
        return Sent.DONE

    def _write_error(self, error: StatusError, http2: Http2) -> Sent:
        if isinstance(error, RefusedError):
            http2.reset_stream(self.stream_id, ErrorCodes.REFUSED_STREAM)
        else:
            self._write_end(_status(error) if self.answering else _refusal(error), http2)
        return Sent.DONE

    def _write_end(self, trailers: list[Header], http2: Http2) -> None:
        http2.send_headers(self.stream_id, trailers, end_stream=True)
        if not self.half_closed:
            http2.reset_stream(self.stream_id, ErrorCodes.NO_ERROR)


def _check_token(fields: dict[bytes, bytes], tokens: Tokens) -> None:
    """Before anything is told about what is served. Probes of health carry no token."""
    if not tokens.admits(fields.get(b"authentication")):
        raise StatusError(
            Status.PERMISSION_DENIED, "a valid token is needed in the metadata 'authentication'"
        )


def _refusal(error: StatusError) -> list[Header]:
    return [*_RESPONSE, (b"grpc-accept-encoding", ENCODINGS), *_status(error)]


def _status(error: StatusError) -> list[Header]:
    return [
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

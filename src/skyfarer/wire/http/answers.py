"""What a client of the HTTP server is told, in the form its protocol has for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from skyfarer.wire import protobuf
from skyfarer.wire.http.endpoints import PROTOBUF as PROTOBUF
from skyfarer.wire.http.endpoints import Dialect

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
SENTENCE_CHARS_MAX: Final = 300
_STATUS_MESSAGE: Final = 2  # field of google.rpc.Status

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content_type: str
    body: bytes
    headers: Headers = ()


class Refused(Exception):  # noqa: N818 - an outcome; it never leaves the room
    """A request ends with this status. A sentence that quotes the client is cut to its bound."""

    def __init__(self, status: int, sentence: str, headers: Headers = ()) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence[:SENTENCE_CHARS_MAX]
        self.headers = headers


def taken(dialect: Dialect, asked_in: str = "") -> Answer:
    """Everything the body held is durable. `asked_in` as for `refused`."""
    if dialect is Dialect.OTLP and asked_in != JSON:
        return Answer(200, PROTOBUF, b"")  # an Export…Response without a partial success
    if dialect is Dialect.LOGGING:
        return Answer(200, JSON, b'{"status":"success","msg":"success"}\n')
    if dialect is Dialect.ZIPKIN:
        return Answer(202, TEXT, b"")  # some of its clients take nothing else for success
    return Answer(200, JSON, b"{}\n")


def delivered(request_id: str, now_ms: int) -> Answer:
    """Firehose delivers again what was not answered with the number it gave it."""
    body = json.dumps({"requestId": request_id, "timestamp": now_ms})
    return Answer(200, JSON, body.encode() + b"\n")


def refused(dialect: Dialect | None, refusal: Refused, asked_in: str = "") -> Answer:
    """`asked_in` is the request's content type: OTLP's answers have the same."""
    status, sentence, headers = refusal.status, refusal.sentence, refusal.headers
    if dialect is Dialect.LOGGING:
        return Answer(status, JSON, _json(status="failing", msg=sentence), headers)
    if dialect is Dialect.OTLP and asked_in == JSON:
        return Answer(status, JSON, _json(message=sentence), headers)
    if dialect is Dialect.V2:
        return Answer(status, JSON, _json(error=sentence), headers)
    if dialect is Dialect.FIREHOSE:
        return Answer(status, JSON, _json(errorMessage=sentence), headers)
    if dialect is Dialect.OTLP:
        return Answer(status, PROTOBUF, protobuf.text(_STATUS_MESSAGE, sentence), headers)
    return Answer(status, TEXT, f"{sentence}\n".encode("utf-8", "replace"), headers)


def _json(**values: str) -> bytes:
    return json.dumps(values).encode() + b"\n"

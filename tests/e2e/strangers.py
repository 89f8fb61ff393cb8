"""Clients that send hostile messages to every call and every route of a receiver.

They speak gRPC and HTTP as agents do, and count the answers: a stranger is served or refused, and
never met by an error of the server's own.
"""

from __future__ import annotations

import http.client
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from skyfarer.testing.mutations import Mutator
from skyfarer.testing.specimens import MESSAGES, STAND_IN, Specimen, Specimens
from skyfarer.wire.http.endpoints import ENDPOINTS, Dialect, Endpoint
from skyfarer.wire.messages import v2_register
from skyfarer.wire.rpc import RPCS, V2_TWINS, Rpc, Streaming
from wire.http.posts import POSTS

ANSWER_TIMEOUT_S: Final = 120.0
CALLS_AT_ONCE: Final = 32
CALL_MESSAGES: Final = 100
SPECIMENS: Final = 8
CLEAN: Final = frozenset(
    {"OK", "INVALID_ARGUMENT", "UNIMPLEMENTED", "NOT_FOUND", "RESOURCE_EXHAUSTED"}
)
"""Codes of gRPC that a stranger may be answered."""
EVERY_CALL: Final = (*RPCS, *V2_TWINS)
HEX_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId"})
ASKED: Final[Mapping[str, type[Any]]] = {
    "/v2/service/register": v2_register.Services,
    "/v2/instance/register": v2_register.ServiceInstances,
    "/v2/instance/heartbeat": v2_register.ServiceInstancePingPkg,
}
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
ODD: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0.5, 2**31, 2**63, 2**64, 10**400, float("nan"), float("inf"), -1e308),
    *("", "x" * 5_000, "\ud800", "\0", "NaN", "1e9", "-1", "9" * 40, "0001-01-01T00:00:00Z"),
    *([], {}, [None], {"": {}}, [[]] * 500, {"a" * 500: 1}, "DEEP [", "DEEP {"),
)
_DEEP: Final[Mapping[str, str]] = {
    '"DEEP ["': "[" * 10_000 + "]" * 10_000,
    '"DEEP {"': '{"a":' * 2_000 + "1" + "}" * 2_000,
}


def message_of(rpc: Rpc) -> type[Any]:
    """The request of that call, or what stands in for a message that nobody described here."""
    if rpc.kind in MESSAGES and rpc.repeated_field is None:
        return MESSAGES[rpc.kind]
    try:
        found: type[Any] = GetMessageClass(
            descriptor_pool.Default().FindMessageTypeByName(rpc.request)
        )
    except KeyError:
        return STAND_IN
    return found


def hostile(random: Random, specimens: Sequence[Specimen]) -> Iterator[bytes]:
    mutator = Mutator(random, specimens)
    while True:
        yield mutator.message()[1]


class Caller:
    """Sends messages to each call of gRPC; `answers` counts them by path and code.

    `beside` makes good messages, which go between the hostile ones of a call that takes segments.
    """

    def __init__(self, channel: grpc.Channel, random: Random, now_ms: int) -> None:
        self._channel, self._random = channel, random
        self._specimens = Specimens(random, now_ms)
        self.answers = Counter[tuple[str, str]]()
        self.sent = 0

    def call_each(self, messages: int) -> None:
        """Sends so many to each call of the table."""
        for rpc in EVERY_CALL:
            specimens = [
                self._specimens.filled(message_of(rpc), rpc.kind) for _ in range(SPECIMENS)
            ]
            some = islice(hostile(self._random, specimens), messages)
            if rpc.streaming is Streaming.UNARY:
                self._ask(rpc.path, some)
            else:
                self._stream(rpc, list(some))

    def _ask(self, path: str, messages: Iterable[bytes]) -> None:
        ask = self._channel.unary_unary(path)
        messages = iter(messages)
        while some := list(islice(messages, CALLS_AT_ONCE)):
            futures = [ask.future(one, timeout=ANSWER_TIMEOUT_S) for one in some]
            for future in futures:
                self._count(path, future.code())
            self.sent += len(some)

    def _stream(self, rpc: Rpc, messages: list[bytes]) -> None:
        for first in range(0, len(messages), CALL_MESSAGES):
            some = messages[first : first + CALL_MESSAGES]
            if rpc.streaming is Streaming.BIDI:
                call = self._channel.stream_stream(rpc.path)(iter(some), timeout=ANSWER_TIMEOUT_S)
                with suppress(grpc.RpcError):
                    list(call)
            else:
                call = self._channel.stream_unary(rpc.path).future(
                    iter(some), timeout=ANSWER_TIMEOUT_S
                )
            self._count(rpc.path, call.code())
            self.sent += len(some)

    def _count(self, path: str, code: grpc.StatusCode) -> None:
        self.answers[path, code.name] += 1


class Poster:
    """Posts bodies to each route; `answers` counts them by path and status."""

    def __init__(self, port: int, random: Random, now_ms: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_TIMEOUT_S)
        self._random = random
        self._specimens = Specimens(random, now_ms)
        self.answers = Counter[tuple[str, int]]()
        self.failures = list[str]()
        self.sent = 0

    def post_each(self, bodies: int) -> None:
        """Posts so many bodies to each route, the last tenth of them of the wrong type."""
        for endpoint in ENDPOINTS.values():
            if endpoint.dialect is not Dialect.LOGGING:  # a satellite's alone
                for number in range(bodies):
                    self._post(endpoint.path, *self._body(endpoint, number % 10))
        self._connection.close()

    def _post(self, path: str, content_type: str, body: bytes) -> None:
        try:
            self._connection.request("POST", path, body, {"Content-Type": content_type})
            answer = self._connection.getresponse()
            said = answer.read()
        except (http.client.HTTPException, OSError) as error:
            raise AssertionError(f"{path} did not answer {body[:200].hex()}") from error
        self.answers[path, answer.status] += 1
        self.sent += 1
        if answer.status >= 500:
            self.failures.append(f"{path}: {answer.status} {said!r} to {body[:500]!r}")

    def _body(self, endpoint: Endpoint, number: int) -> tuple[str, bytes]:
        random, message = self._random, ASKED.get(endpoint.path) or MESSAGES.get(endpoint.kind)
        specimen = self._specimens.filled(message or STAND_IN, endpoint.kind)
        payload = next(hostile(random, [specimen]))
        plain = endpoint.dialect is Dialect.OTLP or PROTOBUF in endpoint.kinds
        if number == 9 or (plain and number % 2):
            return (PROTOBUF if plain or random.random() < 0.5 else JSON), payload
        known = [post.value for post in POSTS if post.path == endpoint.path]
        values = [one for one in known if not isinstance(one, bytes)]
        values += [json.loads(one) for one in known if isinstance(one, bytes) and one[:1] in b"[{"]
        if not values or (number % 2 and message):
            value = _with_hex_ids(MessageToDict((message or STAND_IN).FromString(specimen.payload)))
            values = [[value] if endpoint.dialect is Dialect.ARRAY else value]
        return JSON, odd_json(random, values[int(random.random() * len(values))])


def _with_hex_ids(value: Any) -> Any:
    """OTLP's JSON has ids in hex, and protobuf's in base64."""
    if isinstance(value, list):
        return [_with_hex_ids(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: b64decode(one).hex() if name in HEX_IDS and _is_base64(one) else _with_hex_ids(one)
        for name, one in value.items()
    }


def _is_base64(value: Any) -> bool:
    return isinstance(value, str) and value.endswith("=")


def odd_json(random: Random, value: Any) -> bytes:
    """The text of a JSON value in which one other value is odd, or the text cut off or changed."""
    copied = [json.loads(json.dumps(value))]
    places = list(_places(copied))
    for _ in range(random.choice((1, 1, 2))):
        container, key = random.choice(places)
        container[key] = random.choice(ODD)
    text = json.dumps(copied[0])
    for short, deep in _DEEP.items():
        text = text.replace(short, deep, 1)
    body = bytearray(text.encode())
    if random.random() < 0.2:
        body[random.randrange(len(body))] = random.randrange(256)
    return bytes(body[: random.randrange(len(body))] if random.random() < 0.1 else body)


def _places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in it that has a value, on every level."""
    items = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in list(items):
        yield container, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


def unclean(caller: Caller) -> list[str]:
    """The answers that say that the server failed."""
    answers = caller.answers.items()
    return [f"{path}: {code}, {n} times" for (path, code), n in answers if code not in CLEAN]

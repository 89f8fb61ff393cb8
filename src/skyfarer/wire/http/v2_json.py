"""SkyWalking 7's protocol as JSON: registrations and signs of life, which are asked, and segments.

It is proto3 JSON of the v2 messages, but for two things. A segment is one flat object: the fields
of `SegmentObject`, and beside them the `globalTraceIds` that an `UpstreamSegment` has around it.
And a registration is answered by an array with every name in it; one that has no id yet has the
value 0, where gRPC leaves it out. The agent asks again in either case.

Needs protobuf, so it is imported by the first body that comes. Any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skyfarer.wire.http.answers import Refused
from skyfarer.wire.http.proto_json import reader_of, value_of
from skyfarer.wire.messages import v2_register
from skyfarer.wire.protobuf import delimited
from skyfarer.wire.rpc import BY_PATH, Rpc

SEGMENTS_MAX: Final = 10_000  # of one body
_UPSTREAM: Final = "skywalking.v2.UpstreamSegment"
_SEGMENT: Final = "skywalking.v2.SegmentObject"
_SEGMENT_FIELD: Final = 2  # of UpstreamSegment


@dataclass(frozen=True)
class Question:
    """`message` is to be asked by that call; `answered` makes a body of what comes back."""

    rpc: Rpc
    message: bytes
    answered: Callable[[bytes], bytes]


def question(path: str, body: bytes) -> Question:
    """Refused when the body is none of that path."""
    rpc, names = _QUESTIONS[path]
    message = reader_of(rpc.request).encode(value_of(body), rpc.request.rpartition(".")[2])
    return Question(rpc, message, names(message))


def segments(body: bytes) -> list[bytes]:
    """As `UpstreamSegment`s; Refused when one of them is none."""
    value = value_of(body)
    found = value if isinstance(value, list) else [value]
    if len(found) > SEGMENTS_MAX:
        raise Refused(413, f"the body has more than {SEGMENTS_MAX} segments; send fewer at once")
    return [_upstream(one) for one in found]


def _upstream(value: Any) -> bytes:
    if not isinstance(value, dict):
        raise Refused(400, "a segment must be a JSON object")
    within = value.get("segment")
    if isinstance(within, str):
        return reader_of(_UPSTREAM).encode(value, "UpstreamSegment")
    ids = value.get("globalTraceIds")
    head = reader_of(_UPSTREAM).encode({"globalTraceIds": ids}, "UpstreamSegment") if ids else b""
    segment = reader_of(_SEGMENT).encode(value if within is None else within, "SegmentObject")
    return head + delimited(_SEGMENT_FIELD, segment)


def _services(message: bytes) -> Callable[[bytes], bytes]:
    names = [one.serviceName for one in v2_register.Services.FromString(message).services]
    read = v2_register.ServiceRegisterMapping.FromString
    return lambda answer: _pairs(names, read(answer).services)


def _instances(message: bytes) -> Callable[[bytes], bytes]:
    told = v2_register.ServiceInstances.FromString(message).instances
    names = [one.instanceUUID for one in told]
    read = v2_register.ServiceInstanceRegisterMapping.FromString
    return lambda answer: _pairs(names, read(answer).serviceInstances)


def _ping(_message: bytes) -> Callable[[bytes], bytes]:
    return _commands


def _pairs(names: Sequence[str], known: Sequence[v2_register.KeyIntValuePair]) -> bytes:
    numbers = {one.key: one.value for one in known}
    return _body([{"key": name, "value": numbers.get(name, 0)} for name in names])


def _commands(answer: bytes) -> bytes:
    commands = [
        {
            "command": one.command,
            "args": [{"key": argument.key, "value": argument.value} for argument in one.args],
        }
        for one in v2_register.Commands.FromString(answer).commands
    ]
    return _body({"commands": commands} if commands else {})


def _body(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


_QUESTIONS: Final[Mapping[str, tuple[Rpc, Callable[[bytes], Callable[[bytes], bytes]]]]] = {
    "/v2/service/register": (BY_PATH["/Register/doServiceRegister"], _services),
    "/v2/instance/register": (BY_PATH["/Register/doServiceInstanceRegister"], _instances),
    "/v2/instance/heartbeat": (BY_PATH["/ServiceInstancePing/doPing"], _ping),
}

"""Bodies of Telegraf, Zipkin and Firehose: kept as they came, once they are what their path is for.

Nothing analyses them yet, so no more is asked of them than that a reader can begin with them. Any
thread: it takes as long as the body is long.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from skyfarer.wire.http.answers import Refused
from skyfarer.wire.http.proto_json import value_of
from skyfarer.wire.rpc import Kind
from skyfarer.wire.split import sound_at_top

# Thrift's binary protocol: a list of structures, and how many.
_THRIFT_LIST: Final = Struct(">Bi")
_STRUCTURE: Final = 12
_STRUCTURE_BYTES_MIN: Final = 1


def request_id(kind: int, body: bytes) -> str:
    """The number that a delivery of Firehose has; of the others there is none. Refused when the
    body is none of that kind."""
    if kind == Kind.ZIPKIN_V2_PROTO:
        if not sound_at_top(body):
            raise Refused(400, "the body is no protobuf message")
    elif kind == Kind.ZIPKIN_V1_THRIFT:
        _check_thrift(body)
    elif kind in (Kind.ZIPKIN_V2_JSON, Kind.ZIPKIN_V1_JSON):
        _objects(value_of(body), "the body")
    elif kind == Kind.TELEGRAF:
        _check_telegraf(value_of(body))
    else:
        return _delivery(value_of(body))
    return ""


def _check_thrift(body: bytes) -> None:
    if len(body) >= _THRIFT_LIST.size:
        element, count = _THRIFT_LIST.unpack_from(body)
        rest = len(body) - _THRIFT_LIST.size
        if element == _STRUCTURE and 0 <= count * _STRUCTURE_BYTES_MIN <= rest and _ended(body):
            return
    raise Refused(400, "the body is no list of spans in Thrift's binary protocol")


def _ended(body: bytes) -> bool:
    """A structure ends with a zero."""
    return len(body) == _THRIFT_LIST.size or body[-1] == 0


def _check_telegraf(value: Any) -> None:
    """A batch, or one metric alone, as its output is configured."""
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object")
    if "metrics" in value:
        _objects(value["metrics"], "metrics")
    elif "name" not in value or "fields" not in value:
        raise Refused(400, "the body must have 'metrics', or a metric's 'name' and 'fields'")


def _delivery(value: Any) -> str:
    if not isinstance(value, dict) or not isinstance(value.get("requestId"), str):
        raise Refused(400, "the body must be a JSON object with a requestId")
    for record in _objects(value.get("records"), "records"):
        if not isinstance(record.get("data"), str):
            raise Refused(400, "each of the records must have data, in base64")
    found: str = value["requestId"]
    return found


def _objects(value: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Refused(400, f"{what} must be a JSON array of objects")
    return value

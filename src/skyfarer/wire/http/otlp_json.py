"""OpenTelemetry's JSON → its protobuf, for exporters that can do no better, browsers' above all.

It is not quite proto3 JSON: ids are hexadecimal digits, enums are numbers only, and a field has one
name. So it has a reader of its own, which needs no descriptions and not the library. Fields we do
not know are left out; what is there is written, zeros as well, since some of them mean something.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from skyfarer.wire.http.answers import Refused
from skyfarer.wire.http.otlp_fields import MESSAGES, Field
from skyfarer.wire.http.proto_json import value_of
from skyfarer.wire.protobuf import delimited, varint
from skyfarer.wire.row import Kind

DEPTH_MAX: Final = 64  # of messages in messages; protobuf's own readers stop at 100
_REQUESTS: Final = {
    Kind.OTLP_TRACES: "ExportTraceServiceRequest",
    Kind.OTLP_METRICS: "ExportMetricsServiceRequest",
    Kind.OTLP_LOGS: "ExportLogsServiceRequest",
}
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


def export_request(kind: int, body: bytes) -> bytes:
    """The request, encoded; nothing when it exports nothing. Refused when it is none of that kind.

    Any thread: it takes as long as the body is long.
    """
    name, value = _REQUESTS[Kind(kind)], value_of(body)
    encoded = _message(name, value, name, 0)
    if not encoded and value and not MESSAGES[name].keys() & value.keys():
        raise Refused(400, f"the body has none of the fields that an {name} has")
    return encoded


def _message(name: str, value: Any, where: str, depth: int) -> bytes:
    if not isinstance(value, dict):
        raise Refused(400, f"{where} must be a JSON object")
    if depth > DEPTH_MAX:
        raise Refused(400, f"something lies in more than {DEPTH_MAX} messages: {where}")
    fields, parts = MESSAGES[name], []
    for key, below in value.items():
        field = fields.get(key)
        if field is not None and below is not None:
            parts.append(_field(field, below, f"{where}.{key}", depth))
    return b"".join(parts)


def _field(field: Field, value: Any, where: str, depth: int) -> bytes:
    if field.repeated and not isinstance(value, list):
        raise Refused(400, f"{where} must be a JSON array")
    values = value if field.repeated else (value,)
    if field.type in MESSAGES:
        return b"".join(
            delimited(field.number, _message(field.type, one, where, depth + 1)) for one in values
        )
    wire_type, encode, what = _SCALARS[field.type]
    try:
        encoded = [encode(one) for one in values]
    except (ValueError, TypeError, OverflowError, struct.error) as error:
        raise Refused(400, f"{where} must be {what}") from error
    if wire_type == _DELIMITED:
        return b"".join(delimited(field.number, one) for one in encoded)
    if field.repeated:
        return delimited(field.number, b"".join(encoded)) if encoded else b""
    return varint(field.number << 3 | wire_type) + encoded[0]


def _whole_number(value: Any) -> int:
    """64 bits come as text, since JSON's numbers lose some of them."""
    if isinstance(value, bool) or not isinstance(value, (int, str, float)):
        raise TypeError
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError
    return number


def _signed(value: Any) -> bytes:
    number = _whole_number(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError
    return varint(number & (1 << 64) - 1)


def _unsigned(bits: int) -> Callable[[Any], bytes]:
    def encode(value: Any) -> bytes:
        number = _whole_number(value)
        if not 0 <= number < 1 << bits:
            raise OverflowError
        return varint(number)

    return encode


def _zigzag(value: Any) -> bytes:
    number = _whole_number(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise OverflowError
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _packed(format: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(format).pack
    return lambda value: pack(_whole_number(value))


def _double(value: Any) -> bytes:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError
    return struct.pack("<d", float(value))


def _bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise TypeError
    return b"\x01" if value else b"\x00"


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError
    return value.encode("utf-8")


def _hex(value: Any) -> bytes:
    return binascii.unhexlify(_text(value))


def _base64(value: Any) -> bytes:
    digits = _text(value).translate(bytes.maketrans(b"-_", b"+/"))
    return base64.b64decode(digits + b"=" * (-len(digits) % 4), validate=True)


_SCALARS: Final[Mapping[str, tuple[int, Callable[[Any], bytes], str]]] = {
    "string": (_DELIMITED, _text, "text"),
    "hex": (_DELIMITED, _hex, "an even number of hexadecimal digits"),
    "bytes": (_DELIMITED, _base64, "text in base64"),
    "bool": (_VARINT, _bool, "true or false"),
    "enum": (_VARINT, _unsigned(31), "the number of a value, not its name"),
    "int64": (_VARINT, _signed, "a whole number of 64 bits"),
    "uint32": (_VARINT, _unsigned(32), "a whole number of 32 bits, not below 0"),
    "uint64": (_VARINT, _unsigned(64), "a whole number of 64 bits, not below 0"),
    "sint32": (_VARINT, _zigzag, "a whole number of 32 bits"),
    "fixed32": (_FIXED32, _packed("<I"), "a whole number of 32 bits, not below 0"),
    "fixed64": (_FIXED64, _packed("<Q"), "a whole number of 64 bits, not below 0"),
    "sfixed64": (_FIXED64, _packed("<q"), "a whole number of 64 bits"),
    "double": (_FIXED64, _double, "a number"),
}

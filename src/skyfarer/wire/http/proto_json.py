"""proto3 JSON → protobuf, for clients that cannot speak protobuf: browsers, gateways, scripts.

It needs the library, 6 MB, so that is imported by the first body that comes and not before. An
array is read element by element: the objects of one of them are all that is ever in memory beside
the text. Fields we do not know are left out, as the OAP does: agents may be newer than we are.

Converting costs far more than the bytes that ask for it, so it has bounds of its own: the values of
a body, which are what its objects in memory are made of, and the messages inside one message, which
are what it takes the event loop's time for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, Final

from skyfarer.base.units import KIB
from skyfarer.wire.http.answers import Refused
from skyfarer.wire.rpc import FORWARD

EXTRA: Final = "pip install 'skyfarer[filters]'"
VALUES_MAX: Final = 256 * KIB  # of a body; segments of 2 MiB have half as many
MESSAGES_MAX: Final = 10_000  # spans, tags, references, … of one record
# Up to the next mark outside of strings. Possessive throughout, and it matches wherever it starts:
# nothing a body holds can make it slow.
_VALUE: Final = re.compile(
    r'(?:[^",\[{]++|"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z))*+(?:[,\[{]|\Z)', re.DOTALL
)
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_decode: Final = json.JSONDecoder().raw_decode


def records(kind: int, body: bytes, array: bool) -> Iterator[bytes]:
    """The messages of a body, encoded; Refused as soon as one is none of that kind."""
    reader = reader_of(FORWARD[kind].request)
    try:
        text = body.decode("utf-8")
        check_values(text)
        for number, value in enumerate(_elements(text) if array else whole(text)):
            yield reader.encode(value, f"{reader.name} {number}" if array else reader.name)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is no UTF-8: {error.reason} at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is no JSON: {error}") from error


def value_of(body: bytes) -> Any:
    """The one JSON value that a body is. Refused when it is none, or has too many in it.

    Any thread: it takes as long as the body is long.
    """
    try:
        text = body.decode("utf-8")
        check_values(text)
        (value,) = whole(text)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is no UTF-8: {error.reason} at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is no JSON: {error}") from error
    return value


def check_values(text: str) -> None:
    """Refused when there are too many."""
    marks = sum(1 for _ in islice(_VALUE.finditer(text), VALUES_MAX + 2))
    if marks > VALUES_MAX + 1:
        raise Refused(413, f"the body has more than {VALUES_MAX} values; send fewer at once")


def whole(text: str) -> Iterator[Any]:
    """The one value of a text; ValueError when it is none, or something follows."""
    value, at = _decode(text, _behind_space(text, 0))
    if _behind_space(text, at) != len(text):
        raise ValueError(f"something follows its end at char {at}")
    yield value


def _elements(text: str) -> Iterator[Any]:
    at = _behind_space(text, 0)
    if text[at : at + 1] != "[":
        raise Refused(400, "the body must be a JSON array")
    at = _behind_space(text, at + 1)
    mark = text[at : at + 1]
    while mark != "]":
        value, at = _decode(text, at)
        yield value
        at = _behind_space(text, at)
        mark = text[at : at + 1]
        if mark not in ("]", ","):
            raise ValueError(f"a comma or the end of the array is missing at char {at}")
        at = _behind_space(text, at + 1) if mark == "," else at
    if _behind_space(text, at + 1) != len(text):
        raise ValueError(f"something follows its end at char {at + 1}")


def _behind_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


class Reader:
    """Of one type of message."""

    def __init__(self, full_name: str) -> None:
        from google.protobuf import descriptor_pool, json_format, message_factory

        from skyfarer.wire import messages  # noqa: F401 - it fills the pool

        self.name = full_name.rpartition(".")[2]
        self._descriptor = descriptor_pool.Default().FindMessageTypeByName(full_name)
        self._new = message_factory.GetMessageClass(self._descriptor)
        self._parse = json_format.ParseDict

    def encode(self, value: Any, where: str) -> bytes:
        if _check_shape(value, self._descriptor, where) > MESSAGES_MAX:
            raise Refused(413, f"{where} has more than {MESSAGES_MAX} messages inside it")
        try:
            message = self._parse(value, self._new(), ignore_unknown_fields=True)
            encoded = message.SerializeToString()
        except Exception as error:
            raise Refused(400, f"{where} cannot be read: {error}") from error
        if not encoded:
            raise Refused(400, f"{where} has none of the fields that a {self.name} has")
        return bytes(encoded)


@cache
def reader_of(full_name: str) -> Reader:
    """Refused where the library is missing."""
    try:
        return Reader(full_name)
    except ModuleNotFoundError as error:
        raise Refused(
            501, f"JSON needs the module '{error.name}' here; install it: {EXTRA}"
        ) from error


def _check_shape(value: Any, descriptor: Any, where: str) -> int:
    """How many messages it is. protobuf's own reader, told to pass over what it does not know,
    takes a text for a message and passes over each of its letters."""
    if not isinstance(value, dict):
        raise Refused(400, f"{where} must be a JSON object")
    fields, count = _messages_of(descriptor), 1
    for name in fields.keys() & value.keys():
        of_type, below, inside = fields[name], value[name], f"{where}.{name}"
        for one in below if isinstance(below, list) else (below,):
            if one is not None:
                count += _check_shape(one, of_type, inside)
    return count


@cache
def _messages_of(descriptor: Any) -> dict[str, Any]:
    """Its fields that hold messages, by either of their names."""
    fields = [one for one in descriptor.fields if one.message_type is not None]
    return {name: one.message_type for one in fields for name in (one.name, one.json_name)}

"""Payload → protobuf message, by kind.

protobuf costs 6 MB, so it is imported when a filter that decodes is constructed, and is no
dependency of a satellite without one: it comes with the extra `filters`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from skyfarer.base.errors import ConfigError
from skyfarer.satellite.contracts import Unfit
from skyfarer.satellite.processors.weight import FIELDS_MAX, LIGHT_BYTES, too_heavy
from skyfarer.wire.rpc import FORWARD, Kind

EXTRA: Final = "pip install 'skyfarer[filters]'"

# Module of `wire.messages` that holds the type which the RPC table names; "" for itself.
_MODULES: Final[Mapping[int, str]] = {
    Kind.SEGMENT: "",
    Kind.SPAN_ATTACHED_EVENT: "",
    Kind.INSTANCE_PROPERTIES: "",
    Kind.INSTANCE_PING: "",
    Kind.LOG: "log",
    Kind.EVENT: "event",
    Kind.METER: "meter",
    Kind.METER_COLLECTION: "meter",
    Kind.JVM_METRICS: "runtime",
    Kind.CLR_METRICS: "runtime",
    Kind.BROWSER_PAGE: "browser",
    Kind.BROWSER_ERROR: "browser",
}

DECODABLE: Final = frozenset(_MODULES)


def require_decoding(filter_name: str) -> None:
    """To be called by the constructor of a filter that decodes; ConfigError names the extra."""
    try:
        importlib.import_module("skyfarer.wire.messages")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"filter '{filter_name}' needs the module '{error.name}'; install it with: {EXTRA}"
        ) from error


@cache
def message_type(kind: int) -> Any:
    """The generated class; KeyError for a kind outside DECODABLE."""
    module = _MODULES[kind]
    from skyfarer.wire import messages

    name = FORWARD[kind].request.rpartition(".")[2]
    return getattr(getattr(messages, module) if module else messages, name)


@cache
def _decoder(kind: int) -> Callable[[bytes | memoryview], Any]:
    decoder: Callable[[bytes | memoryview], Any] = message_type(kind).FromString
    return decoder


def decode(kind: int, payload: bytes | memoryview) -> Any:
    """A message of the caller's own; Unfit when the bytes are none of that kind, or too many."""
    decoder = _decoder(kind)
    if len(payload) > LIGHT_BYTES and too_heavy(payload, message_type(kind).DESCRIPTOR):
        what = f"{len(payload)} bytes of {FORWARD[kind].request} have more than {FIELDS_MAX} fields"
        raise Unfit("too_many_fields", what)
    try:
        return decoder(payload)
    except Exception as error:
        what = f"{len(payload)} bytes are no {FORWARD[kind].request}: {error}"
        raise Unfit("undecodable", what) from error

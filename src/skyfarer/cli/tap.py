"""`skyfarer satellite tap`: records of a running satellite as they pass, to be read by people."""

from __future__ import annotations

import json
import socket
import sys
from binascii import a2b_base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.satellite.tap_socket import reachable
from skyfarer.wire.rpc import Kind

SHOWN_CHARACTERS_MAX: Final = 2000


@dataclass(frozen=True)
class TapSettings:
    """None is everything, or for ever."""

    pipe: str | None
    kind: str | None
    point: str | None
    rate: float
    count: int | None
    json: bool


def tap(directory: Path, settings: TapSettings) -> int:
    """Blocks until the satellite ends, or `count` records were shown."""
    shown = missed = 0
    for entry in _entries(directory, _wish(settings)):
        if "error" in entry:
            raise PermanentError(f"the satellite answers: {entry['error']}")
        missed += entry.get("missed", 0)
        if "payload" not in entry:
            continue
        print(json.dumps(entry) if settings.json else line(entry), flush=True)
        shown += 1
        if shown == settings.count:
            break
    if missed:
        print(f"{missed} more records passed unshown", file=sys.stderr)
    return 0


def _wish(settings: TapSettings) -> dict[str, object]:
    kind = None
    if settings.kind is not None:
        names = {one.name: one for one in Kind if one}
        if settings.kind.upper() not in names:
            raise ConfigError(f"there is no kind '{settings.kind}'{nearest(settings.kind, names)}")
        kind = int(names[settings.kind.upper()])
    return {"pipe": settings.pipe, "kind": kind, "point": settings.point, "rate": settings.rate}


def _entries(directory: Path, wish: dict[str, object]) -> Iterator[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            with reachable(directory) as path:
                connection.connect(path)
        except OSError as error:
            raise PermanentError(
                f"no satellite with its data in {directory} can be tapped: {error.strerror}"
            ) from error
        connection.sendall(json.dumps(wish).encode() + b"\n")
        with connection.makefile("rb") as lines:
            for text in lines:
                entry: dict[str, Any] = json.loads(text)
                yield entry


def line(entry: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(entry["time_ms"] / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    name = kind_name(entry["kind"])
    head = f"{at} {entry['pipe']} {entry['point']:<3} {name} {entry['size_bytes']} B"
    payload = a2b_base64(entry["payload"])
    whole = len(payload) == entry["size_bytes"]
    return f"{head}  {_readable(entry['kind'], payload) if whole else _hex(payload)}"


def kind_name(kind: int) -> str:
    try:
        return Kind(kind).name
    except ValueError:
        return str(kind)


def _readable(kind: int, payload: bytes) -> str:
    """The message in one line of protobuf's text, where its type and protobuf are there."""
    from skyfarer.satellite.processors.decoding import DECODABLE, message_type

    if kind not in DECODABLE:
        return _hex(payload)
    try:
        message = message_type(kind).FromString(payload)
    except ModuleNotFoundError:
        return _hex(payload)
    except Exception as error:  # noqa: BLE001 - protobuf's own, which is not imported here
        return f"{_hex(payload)} ({error})"
    return " ".join(str(message).split())[:SHOWN_CHARACTERS_MAX]


def _hex(payload: bytes) -> str:
    return payload[: SHOWN_CHARACTERS_MAX // 4].hex()

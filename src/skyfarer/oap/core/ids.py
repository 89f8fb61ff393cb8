"""Entity ids, exactly as SkyWalking spells them (they reach the query protocol and its clients).

    service   b64(name).N              N = 1 for a real service, 0 for a conjectured one
    instance  <service id>_b64(name)
    endpoint  <service id>_b64(name)
    relation  <id>-<id>                of two services or two instances, the origin first
    relation  <service id>-b64(name)-<service id>-b64(name)   of two endpoints

Base64 is the standard alphabet with padding; a blank name, one of spaces and controls
alone, is written as `_blank`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

BLANK: Final = "_blank"
SHOWS: Final = r"[^\x00-\x20]"
"""What a name that is not blank has somewhere, as a pattern. Java's trim() takes the others away,
and none but them: a no-break space is a name."""
_BLANKS: Final = "".join(map(chr, range(0x21)))


def _encode(name: str) -> str:
    shows = name[:1] > " " or name.strip(_BLANKS)
    return base64.b64encode((name if shows else BLANK).encode("utf-8")).decode("ascii")


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{text!r} is not a base64 name in an id") from error


def encoded(name: str) -> str:
    """A name as it stands in an id."""
    return _encode(name)


def service_id(name: str, normal: bool = True) -> str:
    return f"{_encode(name)}.{1 if normal else 0}"


def instance_id(of_service: str, name: str) -> str:
    return f"{of_service}_{_encode(name)}"


def endpoint_id(of_service: str, name: str) -> str:
    return f"{of_service}_{_encode(name)}"


def relation_id(source_id: str, dest_id: str) -> str:
    """Of two services, or of two instances."""
    return f"{source_id}-{dest_id}"


def endpoint_relation_id(
    source_service_id: str, source: str, dest_service_id: str, dest: str
) -> str:
    """Of the endpoints named `source` and `dest`."""
    return f"{source_service_id}-{_encode(source)}-{dest_service_id}-{_encode(dest)}"


def decode_service_id(identifier: str) -> tuple[str, bool]:
    """The service's name and whether it is real; ValueError when the text is no service id."""
    name, dot, flag = identifier.rpartition(".")
    if not dot or flag not in ("0", "1"):
        raise ValueError(f"{identifier!r} is not a service id")
    return _decode(name), flag == "1"


def decode_part_id(identifier: str) -> tuple[str, str]:
    """Of an instance or endpoint id: the service id it belongs to, and its own name."""
    of_service, underscore, name = identifier.partition("_")
    if not underscore:
        raise ValueError(f"{identifier!r} is not an instance or endpoint id")
    decode_service_id(of_service)
    return of_service, _decode(name)

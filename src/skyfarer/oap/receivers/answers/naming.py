"""How the v2 protocol's names become those that are stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from skyfarer.wire.messages import v2_register

NAMED: Final = "NAME:"  # an instance whose agent was told its name has it here, in its uuid
_PROPERTIES: Final = ("os_name", "host_name", "process_no", "language")
_PROPERTY_LENGTH_MAX: Final = 512
_ADDRESSES_MAX: Final = 32  # of one instance
_UUID_LENGTH_MIN: Final = 64

# ServiceType → SkyWalking's NodeType.
NODE_TYPES: Final[Mapping[int, int]] = {
    v2_register.normal: 0,
    v2_register.database: 1,
    v2_register.mq: 4,
    v2_register.cache: 5,
    v2_register.browser: 6,
}


@dataclass(frozen=True)
class NameLengths:
    """In characters; what is longer is cut before anything is looked for."""

    service: int = 70
    instance: int = 70
    endpoint: int = 150

    @property
    def uuid(self) -> int:
        """Enough for any generated one, and for a given name whole."""
        return max(_UUID_LENGTH_MIN, len(NAMED) + self.instance)


def instance_properties(pairs: Iterable[v2_register.KeyStringValuePair]) -> dict[str, str]:
    """Those that are known, by the names they are stored under."""
    properties: dict[str, str] = {}
    addresses: list[str] = []
    for pair in pairs:
        value = pair.value[:_PROPERTY_LENGTH_MAX]
        if pair.key in _PROPERTIES:
            properties[pair.key] = value.lower() if pair.key == "language" else value
        elif pair.key == "ipv4" and len(addresses) < _ADDRESSES_MAX:
            addresses.append(value)
    if addresses:
        properties["ipv4s"] = json.dumps(addresses)
    return properties


def instance_name(service: str, uuid: str, properties: Mapping[str, str]) -> str:
    """The one it was given, or service, process and host: `cart-pid:4711@node-3`."""
    if uuid.startswith(NAMED) and len(uuid) > len(NAMED):
        return uuid.removeprefix(NAMED)
    process = f"-pid:{properties['process_no']}" if "process_no" in properties else ""
    host = f"@{properties['host_name']}" if "host_name" in properties else ""
    return f"{service}{process}{host}"

"""How durations, sizes and addresses are written: `200ms`, `1m`; `50MB`, `4MiB`; `:11800`."""

from __future__ import annotations

import re

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?\Z")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_SIZE = re.compile(r"([0-9]{1,15}) ?([KMG]i?B|B)?\Z")
_UNITS_BYTES: dict[str | None, int] = {
    None: 1,
    "B": 1,
    **{f"{unit}B": 1000**power for power, unit in enumerate("KMG", start=1)},
    **{f"{unit}iB": 1024**power for power, unit in enumerate("KMG", start=1)},
}


def seconds(text: str) -> float:
    """A bare number counts seconds."""
    match = _DURATION.match(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is no duration such as 200ms, 5s or 1m")
    return float(match[1]) * _UNITS_S[match[2]]


def size_bytes(text: str) -> int:
    """A bare number counts bytes; MB is a million of them, MiB 1024 times 1024."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is no size such as 50MB, 4MiB or 1048576")
    return int(match[1]) * _UNITS_BYTES[match[2]]


def address(text: str, default_host: str) -> tuple[str, int]:
    """Host and port; an IPv6 host stands in brackets."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"'{text}' is no address such as 127.0.0.1:11800")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"'{text}' is no address such as [::1]:11800")
    return host.strip("[]") or default_host, int(port)

"""Which ports are open to the network, and what they lack: lines for the operator."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from skyfarer.oap.boot.settings import CoreConfig, SharingServerConfig


def open_ports(places: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """One line for each; `places` are the bound configurations, each after where it stands."""
    known = list(places)
    sharing = next(
        (one for _, one in known if isinstance(one, SharingServerConfig)), SharingServerConfig()
    )
    for where, config in known:
        for key in (field.name for field in fields(config)):
            listens = key.lower().endswith("host") and not key.startswith("internal")
            if listens and _is_open(config, key, sharing):
                lack = _lack(config, key, sharing)
                if lack:
                    address = getattr(config, key)
                    yield f"{where}.{key} is {address}: open to the network, {lack}"


def _is_open(config: Any, key: str, sharing: SharingServerConfig) -> bool:
    if config is sharing and not getattr(sharing, key.removesuffix("Host") + "Port"):
        return False
    if isinstance(config, CoreConfig) and key == "gRPCHost":
        unused = bool(sharing.gRPCPort) or config.role == "Aggregator"
        return not unused and not _loopback(config.gRPCHost)
    return not _loopback(getattr(config, key))


def _lack(config: Any, key: str, sharing: SharingServerConfig) -> str:
    """Queries are asked for no token: core's HTTP port is never authenticated."""
    name = key.removesuffix("Host")
    tls = name + ("SSL" if name == "rest" else "Ssl")
    encrypted = getattr(config, f"{tls}Enabled", False)
    receives = config is sharing or (isinstance(config, CoreConfig) and key == "gRPCHost")
    shown = getattr(config, f"{tls}TrustedCAsPath", None) is not None
    authenticated = receives and (sharing.asks_for_tokens or shown)
    if not encrypted and not authenticated:
        return "neither encrypted nor authenticated"
    return (
        ""
        if encrypted and authenticated
        else "not " + ("authenticated" if encrypted else "encrypted")
    )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

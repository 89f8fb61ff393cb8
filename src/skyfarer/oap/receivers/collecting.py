"""What can be posted to a receiver, and the server that takes it.

It listens where the configuration gives it a port of its own. Otherwise it listens on a Unix
socket, and the main process passes on what is posted to its port (`front`).
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyfarer.base.units import KIB, MIB
from skyfarer.oap.receivers import inner
from skyfarer.oap.receivers.access import AccessSettings
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.http.endpoints import ENDPOINTS, Dialect, Endpoint
from skyfarer.wire.http.server import HttpServer, HttpSettings
from skyfarer.wire.relay import Relay
from skyfarer.wire.routes import Append
from skyfarer.wire.tls import HTTP_1
from skyfarer.wire.tokens import Tokens

HELD_BYTES_MAX: Final = 64 * MIB  # of bodies not kept yet, over all connections
PASSED_ON_MAX: Final = 128  # requests at once that the main process passes on

# The original's routes: `/logging` is a satellite's alone.
COLLECTED: Final[Mapping[str, Endpoint]] = {
    path: endpoint
    for path, endpoint in ENDPOINTS.items()
    if endpoint.dialect is not Dialect.LOGGING
}


@dataclass(frozen=True)
class CollectSettings:
    """`socket` is the path of the Unix socket; it counts when there is no port."""

    socket: str = ""
    body_bytes_max: int = 10 * MIB
    header_bytes_max: int = 8 * KIB
    idle_timeout_s: float = 30.0


def http_server(
    settings: CollectSettings,
    access: AccessSettings,
    tokens: Tokens | None,
    listener: socket.socket | None,
    append: Append,
    relay: Relay,
    registry: Registry,
) -> HttpServer | None:
    """On `listener`, else on the Unix socket, which is made here; None when there is neither."""
    if listener is None and not settings.socket:
        return None
    own = listener is not None
    tls = access.http_tls.server(HTTP_1) if own else None
    server = HttpServer(
        HttpSettings(
            header_bytes_max=settings.header_bytes_max,
            body_bytes_max=settings.body_bytes_max,
            held_bytes_max=max(HELD_BYTES_MAX, settings.body_bytes_max),
            # One that was answered is closed a moment after the next one is passed on.
            connections_max=HttpSettings.connections_max if own else 2 * PASSED_ON_MAX,
            idle_timeout_s=settings.idle_timeout_s,
            otlp_json=True,
        ),
        registry,
        tls.context if tls is not None else None,
        tokens,
        listener or inner.bind(Path(settings.socket)),
        relay,
    )
    server.serve(dict.fromkeys(COLLECTED, append))
    return server

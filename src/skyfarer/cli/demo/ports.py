"""The ports of the demo: the programs' own defaults, or any free one where a default is taken."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Ports:
    oap_grpc: int
    oap_rest: int
    oap_telemetry: int
    satellite_grpc: int
    satellite_telemetry: int
    ui: int


def choose(say: Callable[[str], None]) -> Ports:
    """`say` hears of every default that was taken."""
    chosen: set[int] = set()

    def port(what: str, default: int) -> int:
        found = default if _free(default) else _any_free(chosen)
        chosen.add(found)
        if found != default:
            say(f"port {default} is taken, so {what} gets {found}")
        return found

    return Ports(
        oap_grpc=port("the OAP's gRPC", 11800),
        oap_rest=port("the OAP's query API", 12800),
        oap_telemetry=port("the OAP's telemetry", 1234),
        satellite_grpc=port("the satellite", 11801),
        satellite_telemetry=port("the satellite's telemetry", 1235),
        ui=port("the web page", 8080),
    )


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _any_free(taken: set[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port

"""The ports of the demo: the programs' own defaults, or any free one where a default is taken.

Between the choice and the moment a program listens lies a second or more, in which a second demo
would find the same ports free. So a demo reserves what it chose: a name in the kernel's list of
abstract sockets, which belongs to this network as the ports do, and goes when the process ends.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from skyfarer.base.errors import PermanentError

HOST = "127.0.0.1"
ATTEMPTS_MAX = 100


@dataclass(frozen=True)
class Ports:
    oap_grpc: int
    oap_rest: int
    oap_telemetry: int
    satellite_grpc: int
    satellite_telemetry: int
    ui: int


@contextmanager
def chosen(say: Callable[[str], None]) -> Iterator[Ports]:
    """Ports no other demo chooses meanwhile. `say` hears of every default that was taken."""
    with ExitStack() as held:

        def port(what: str, default: int) -> int:
            found = default if _reserve(default, held) else _any_free(held)
            if found != default:
                say(f"port {default} is taken, so {what} gets {found}")
            return found

        yield Ports(
            oap_grpc=port("the OAP's gRPC", 11800),
            oap_rest=port("the OAP's query API", 12800),
            oap_telemetry=port("the OAP's telemetry", 1234),
            satellite_grpc=port("the satellite", 11801),
            satellite_telemetry=port("the satellite's telemetry", 1235),
            ui=port("the web page", 8080),
        )


def _reserve(port: int, held: ExitStack) -> bool:
    """Whether nobody listens on it and no demo, this one included, has chosen it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0skyfarer-demo-port-{port}")
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except OSError:
        name.close()
        return False
    held.enter_context(name)
    return True


def _any_free(held: ExitStack) -> int:
    for _ in range(ATTEMPTS_MAX):
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if _reserve(port, held):
            return port
    raise PermanentError(f"there is no free port on {HOST}")

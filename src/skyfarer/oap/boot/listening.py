"""The ports of a node: each is taken at the very beginning, or the start ends with one sentence.

A port listens from then on, so the kernel refuses it to everybody else; who accepts on it, and when
it begins to, is the business of the server that the socket is handed to.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

from skyfarer.base.errors import PermanentError

BACKLOG: Final = 1024
_PORTS_FAULT: Final = (errno.EADDRINUSE, errno.EACCES)


def listen(host: str, port: int, purpose: str, variables: str) -> socket.socket:
    """A listening socket, the caller's to close; port 0 takes any free one.

    `variables` is what the names of the environment variables for host and port begin with. A name
    is looked up among IPv4 addresses, an address may be IPv6. PermanentError when it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        at_fault = "PORT" if error.errno in _PORTS_FAULT else "HOST"
        raise PermanentError(
            f"cannot listen on {host}:{port} for {purpose}: {_reason(error)};"
            f" set {variables}_{at_fault} to another {at_fault.lower()}"
        ) from error
    # What is accepted has it too: asyncio sets it only for sockets that it has made by itself.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _reason(error: OSError) -> str:
    """Without what Python adds to it: the address is in the sentence already."""
    known = error.errno in errno.errorcode and not isinstance(error, socket.gaierror)
    return os.strerror(error.errno or 0) if known else str(error.strerror)

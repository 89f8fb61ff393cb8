"""Connections of kazoo's by TLS, with the contexts of this program.

kazoo has a TLS of its own, which believes the machine's authorities beside the one it is given and
reads no file anew. So it is handed a handler that makes the connections.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from skyfarer.base.errors import ConfigError
from skyfarer.wire.tls import ClientTls, ClientTlsSettings


class SecuredHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Of one client. `trouble` is why the last connection failed, or empty: kazoo keeps it to
    itself."""

    def __init__(self, settings: ClientTlsSettings) -> None:
        super().__init__()
        self._tls = ClientTls(settings)
        self.trouble = ""

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_: Any
    ) -> ssl.SSLSocket:
        """OSError is what kazoo tries again after. The name must be one of the certificate's."""
        try:
            secured = self._connected(address, hostname, timeout)
        except ConfigError as error:
            self.trouble = str(error)
            raise OSError(self.trouble) from error
        except OSError as error:
            self.trouble = _sentence(error)
            raise
        self.trouble = ""
        return secured

    def _connected(self, address: tuple[str, int], hostname: str, timeout: float) -> ssl.SSLSocket:
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._tls.context().wrap_socket(plain, server_hostname=hostname)
        except BaseException:
            plain.close()
            raise

    def select(
        self, reading: Sequence[Any], *others: Any, **more: Any
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """What TLS has unpacked already makes no socket readable."""
        waiting = [one for one in reading if isinstance(one, ssl.SSLSocket) and one.pending()]
        if waiting:
            return waiting, [], []
        found: tuple[list[Any], list[Any], list[Any]] = super().select(reading, *others, **more)
        return found


def _sentence(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not believed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    return error.strerror or str(error)

"""Channels to etcd, plain or by TLS.

A channel is made anew after every failure, and its files are read again then: a renewed certificate
needs no restart, and one that was read in the middle of its renewal is replaced by the next try.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import grpc

from skyfarer.base.errors import RetryableError
from skyfarer.wire.tls import ClientTls, ClientTlsSettings

OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)


class Channels:
    """Without `tls` whatever is sent can be read on its way, passwords too."""

    def __init__(self, tls: ClientTlsSettings | None = None) -> None:
        self._settings = tls
        self._checked = ClientTls(tls) if tls is not None else None

    def open(self, endpoint: str) -> grpc.Channel:
        """ConfigError naming the file where there has never been a good one: gRPC would say no
        more than that nobody answers."""
        if self._settings is None or self._checked is None:
            return grpc.insecure_channel(endpoint, options=OPTIONS)
        self._checked.context()
        tls = self._settings
        credentials = grpc.ssl_channel_credentials(
            _read(tls.ca_file), _read(tls.key_file), _read(tls.certificate_file)
        )
        return grpc.secure_channel(endpoint, credentials, options=OPTIONS)

    @property
    def advice(self) -> str:
        """For a failure that may be one of TLS: a server that wants more than we offer ends the
        connection without a word."""
        if self._settings is None:
            return "; if etcd wants TLS: set sslEnabled"
        if self._settings.certificate_file is None:
            return "; if etcd asks for a certificate: set sslCertChainPath and sslKeyPath"
        return "; sslEnabled is true, so etcd must speak TLS there"


def _read(file: Path | None) -> bytes | None:
    try:
        return None if file is None else file.read_bytes()
    except OSError as error:
        raise RetryableError(f"cannot read {file}: {error.strerror}") from error

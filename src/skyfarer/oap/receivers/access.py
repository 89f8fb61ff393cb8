"""Who may report to a receiver: the certificates and tokens it asks for.

The settings travel to the receiver as JSON, so a path is text, and empty text is what is not asked
for. Certificates and tokens are renewed by replacing their files, without a restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.tls import HTTP_1, HTTP_2, ServerTls, ServerTlsSettings
from skyfarer.wire.tokens import Tokens


@dataclass(frozen=True)
class TlsFiles:
    """With `client_ca` a client must show a certificate of that authority (mTLS)."""

    certificate: str = ""
    key: str = ""
    client_ca: str = ""

    def server(self, protocol: str) -> ServerTls | None:
        """None for plain text. Reads no file yet."""
        if not self.certificate:
            return None
        client_ca = Path(self.client_ca) if self.client_ca else None
        return ServerTls(
            ServerTlsSettings(Path(self.certificate), Path(self.key), client_ca, protocol)
        )


@dataclass(frozen=True)
class AccessSettings:
    grpc_tls: TlsFiles = TlsFiles()
    http_tls: TlsFiles = TlsFiles()
    token: str = field(default="", repr=False)
    token_file: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> AccessSettings:
        """As `asdict` wrote it."""
        tls = {name: TlsFiles(**values[name]) for name in ("grpc_tls", "http_tls")}
        return cls(**{**values, **tls})

    def tokens(self, registry: Registry) -> Tokens | None:
        """Started; None when no token is asked for. ConfigError when the file cannot be used."""
        if not self.token and not self.token_file:
            return None
        file = Path(self.token_file) if self.token_file else None
        tokens = Tokens(self.token, file, registry)
        tokens.start()
        return tokens

    def check(self) -> None:
        """ConfigError when a file cannot be used: better said before anything has started."""
        for files, protocol in ((self.grpc_tls, HTTP_2), (self.http_tls, HTTP_1)):
            if (tls := files.server(protocol)) is not None:
                tls.context()
        self.tokens(Registry())

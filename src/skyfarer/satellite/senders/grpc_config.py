"""What a user may say about the gRPC client. The keys are the original's, where it has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skyfarer.satellite.notation import seconds
from skyfarer.satellite.senders.finding import listed
from skyfarer.satellite.senders.token import checked
from skyfarer.wire.tls import ClientTls, ClientTlsSettings


@dataclass(frozen=True)
class TimeoutConfig:
    """After this long a call counts as failed, and its batch is sent again."""

    unary: str = "5s"  # of a call with one message
    stream: str = "20s"  # of a call with a batch

    def __post_init__(self) -> None:
        if min(seconds(self.unary), seconds(self.stream)) <= 0:
            raise ValueError("timeouts must be above 0")


@dataclass(frozen=True)
class GrpcClientConfig:
    server_addr: str = "127.0.0.1:11800"  # of the OAP, or of several, with commas between
    finder_type: Literal["static", "dns"] = "static"  # dns: a name is a set of addresses
    check_period: int = 5  # seconds between two looks at what a name stands for
    enable_tls: bool = False  # TLS 1.2 or newer, with an upstream that speaks it as well
    ca_pem_path: Path | None = None  # whom to believe; by default the machine's authorities
    client_pem_path: Path | None = None  # what we show to an upstream that asks (mTLS)
    client_key_path: Path | None = None  # without a password
    server_name: str = ""  # in the upstream's certificate, if it is not the one in server_addr
    insecure_skip_verify: bool = False  # true believes anyone
    authentication: str = ""  # a token, sent as the metadata `authentication`
    authentication_file: Path | None = None  # the same from a file, read again when it changes
    timeout: TimeoutConfig = TimeoutConfig()

    def __post_init__(self) -> None:
        listed(self.server_addr)
        checked(self.authentication)
        if self.check_period < 1:
            raise ValueError("check_period must be at least 1 second")
        if self.authentication and self.authentication_file is not None:
            raise ValueError("authentication and authentication_file exclude each other")
        if (self.client_pem_path is None) != (self.client_key_path is None):
            raise ValueError("client_pem_path and client_key_path go together")


def tls_of(config: GrpcClientConfig) -> ClientTls | None:
    if not config.enable_tls:
        return None
    settings = ClientTlsSettings(
        ca_file=config.ca_pem_path,
        certificate_file=config.client_pem_path,
        key_file=config.client_key_path,
        verify=not config.insecure_skip_verify,
    )
    return ClientTls(settings)

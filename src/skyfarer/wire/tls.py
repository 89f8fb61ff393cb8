"""TLS for both ends: who we say we are, whom we believe, and files that are renewed meanwhile.

A context is made again when one of its files has changed, so that a renewed certificate, key or
authority needs no restart; what is connected stays connected. While the files do not fit together,
as in the middle of a renewal, the context made before goes on serving.

TLS 1.2 or newer, and one protocol by ALPN. `ssl` is imported by the first context and not before:
whoever speaks plain text has no use for its 4.5 MB. See `is_configured`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skyfarer.base.errors import ConfigError

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)

HTTP_1: Final = "http/1.1"
HTTP_2: Final = "h2"
_Fingerprint = tuple[tuple[int, int, int], ...]


def is_configured(values: Mapping[str, object]) -> bool:
    """Whether the gRPC or HTTP plugin with these keys, as written, will speak TLS.

    For a program's first lines, before asyncio is imported: `satellite.lean` must be left out then.
    Kafka's client brings a TLS of its own and does not count.
    """
    enabled = str(values.get("enable_tls", "")).strip().lower() == "true"
    return enabled or bool(str(values.get("tls_cert_file") or "").strip())


@dataclass(frozen=True)
class ClientTlsSettings:
    """Without `ca_file` the machine's own authorities are believed."""

    ca_file: Path | None = None
    certificate_file: Path | None = None  # with `key_file`: shown to servers that ask (mTLS)
    key_file: Path | None = None
    verify: bool = True  # False believes anyone, whatever name and authority it shows
    protocol: str = HTTP_2  # empty: one that ALPN has no name for


@dataclass(frozen=True)
class ServerTlsSettings:
    """With `client_ca_file` a client must show a certificate of that authority (mTLS)."""

    certificate_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    protocol: str = HTTP_2


class ClientTls:
    """Not for sharing between threads. Makes no file access before `context` is called."""

    def __init__(self, settings: ClientTlsSettings) -> None:
        self._settings = settings
        files = (settings.ca_file, settings.certificate_file, settings.key_file)
        self._renewed = _Renewed(files, self._make)

    def context(self) -> ssl.SSLContext:
        """To be asked at each connection; blocks for as long as the files take to read.

        ConfigError naming the file when there has never been a good one.
        """
        return self._renewed.context()

    def _make(self) -> ssl.SSLContext:
        import ssl

        settings = self._settings
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if not settings.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif settings.ca_file is not None:
            context.load_verify_locations(settings.ca_file)
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if settings.certificate_file is not None:
            _show(context, settings.certificate_file, settings.key_file)
        return _hardened(context, settings.protocol)


class ServerTls:
    """As `ClientTls`, for the listening end."""

    def __init__(self, settings: ServerTlsSettings) -> None:
        self._settings = settings
        files = (settings.certificate_file, settings.key_file, settings.client_ca_file)
        self._renewed = _Renewed(files, self._make)

    def context(self) -> ssl.SSLContext:
        """For a server, to be asked once: each handshake looks for renewed files itself."""
        context = self._renewed.context()
        context.sni_callback = self._follow
        return context

    def _follow(self, handshake: ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
        context = self._renewed.context()
        if context is not first:
            handshake.context = context

    def _make(self) -> ssl.SSLContext:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _show(context, self._settings.certificate_file, self._settings.key_file)
        if self._settings.client_ca_file is not None:
            context.load_verify_locations(self._settings.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        return _hardened(context, self._settings.protocol)


class _Renewed:
    """A context that follows its files."""

    def __init__(self, files: tuple[Path | None, ...], make: Callable[[], ssl.SSLContext]) -> None:
        self._files = tuple(file for file in files if file is not None)
        self._make = make
        self._context: ssl.SSLContext | None = None
        self._made_of: _Fingerprint = ()
        self._refused: _Fingerprint | None = None

    def context(self) -> ssl.SSLContext:
        try:
            found = tuple(_fingerprint(file) for file in self._files)
            if self._context is None or found != self._made_of:
                # Read before the files are, so that a change in between is seen the next time.
                self._context, self._made_of = self._make(), found
        except OSError as failure:
            if self._context is None:
                raise ConfigError(f"TLS: {self._blame(failure)}") from failure
            self._complain(failure)
        return self._context

    def _complain(self, failure: OSError) -> None:
        """Once for each state of the files."""
        found = tuple(_fingerprint(file) for file in self._files if file.exists())
        if found != self._refused:
            self._refused = found
            log.warning("TLS keeps its old certificates: %s", self._blame(failure))

    def _blame(self, failure: OSError) -> str:
        """`ssl` says what is wrong, but not of which file."""
        for file in self._files:
            try:
                file.open("rb").close()
            except OSError as unreadable:
                return f"cannot read {file}: {unreadable.strerror}"
        return f"{', '.join(map(str, self._files))}: {failure}"


def _show(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    context.load_cert_chain(certificate, key, password=_no_password)


def _no_password() -> str:
    """Without it OpenSSL would ask on the terminal and wait."""
    raise OSError("the key is encrypted; store it without a password")


def _hardened(context: ssl.SSLContext, protocol: str) -> ssl.SSLContext:
    import ssl

    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    if protocol:
        context.set_alpn_protocols([protocol])
    return context


def _fingerprint(file: Path) -> tuple[int, int, int]:
    found = file.stat()
    return found.st_mtime_ns, found.st_ino, found.st_size

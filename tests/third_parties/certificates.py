"""What an operator puts on a disk: an authority, and certificates of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


@dataclass(frozen=True)
class Shown:
    """Who somebody says to be. `both` is the key and its certificates in one file, as Java reads
    them."""

    certificate: Path
    key: Path
    both: Path


class Certificates:
    """`ca` is the file of the authority. `renew` replaces it, and what is issued from then on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.ca = directory / "ca.pem"
        self.renew()

    def renew(self) -> None:
        self._authority = trustme.CA()
        self._replace(self.ca, self._authority.cert_pem.bytes())

    def issue(self, name: str, *identities: str) -> Shown:
        """In place of what that name had before."""
        made = self._authority.issue_cert(*identities)
        chain = b"".join(blob.bytes() for blob in made.cert_chain_pems)
        secret = load_pem_private_key(made.private_key_pem.bytes(), None)
        key = secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        files = (self._directory / f"{name}{end}" for end in (".crt", ".key", ".pem"))
        shown = Shown(*files)
        self._replace(shown.certificate, chain)
        self._replace(shown.key, key)
        self._replace(shown.both, key + chain)
        return shown

    def _replace(self, path: Path, content: bytes) -> None:
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.replace(path)

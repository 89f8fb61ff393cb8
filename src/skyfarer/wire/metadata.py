"""What travels with a call besides its messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from skyfarer.base.errors import PermanentError

Header = tuple[bytes, bytes]
Pairs = Sequence[tuple[str, str]]

# What belongs to one hop, or is made anew by our own client.
_OF_THE_HOP: Final = frozenset(
    {
        b"te",
        b"host",
        b"content-type",
        b"content-length",
        b"user-agent",
        b"accept-encoding",
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
    }
)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The caller's own headers, and how long its call may still take: None is for ever."""

    pairs: tuple[tuple[str, str], ...] = ()
    timeout_s: float | None = None

    @classmethod
    def of_headers(cls, headers: Iterable[Header], timeout_s: float | None) -> Metadata:
        """Without the protocol's headers, and without what gRPC would not let be sent on."""
        pairs = (
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in headers
            if not name.startswith((b":", b"grpc-")) and name not in _OF_THE_HOP
        )
        return cls(
            tuple((name, value) for name, value in pairs if _is_name(name) and _is_value(value)),
            timeout_s,
        )

    def with_defaults(self, pairs: Pairs) -> Metadata:
        """With those of `pairs` whose names the caller did not use."""
        names = {name for name, _ in self.pairs}
        added = ((name, value) for name, value in pairs if name.lower() not in names)
        return Metadata((*self.pairs, *added), self.timeout_s)


def header(name: str, value: str) -> Header:
    """PermanentError for what cannot be sent: h2 is told to trust our headers."""
    if not _is_name(name):
        raise PermanentError(f"metadata name {name!r} cannot be sent")
    if not _is_value(value):
        raise PermanentError(f"metadata {name}: its value is not printable ASCII")
    return name.lower().encode("ascii"), value.encode("ascii")


def _is_name(name: str) -> bool:
    letters = name.replace("-", "").replace("_", "").replace(".", "")
    return name.isascii() and letters.isalnum()


def _is_value(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip()

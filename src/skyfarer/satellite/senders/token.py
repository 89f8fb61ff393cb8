"""The token an upstream wants, as written or from a file that somebody renews."""

from __future__ import annotations

import logging
from pathlib import Path

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import KIB

log = logging.getLogger(__name__)

TOKEN_BYTES_MAX = 4 * KIB


class Token:
    """Looks at the file at each call, which costs a stat, and reads it when it has changed."""

    def __init__(self, text: str, file: Path | None) -> None:
        self._text = text
        self._file = file
        self._read_at: tuple[int, int, int] | None = None

    def value(self) -> str:
        """Empty if none is wanted. While the file cannot be read the last token stays; there must
        have been one: else RetryableError."""
        if self._file is None:
            return self._text
        try:
            found = self._file.stat()
            fingerprint = (found.st_mtime_ns, found.st_ino, found.st_size)
            if fingerprint != self._read_at:
                self._text, self._read_at = _read(self._file), fingerprint
        except (OSError, ValueError) as failure:
            if self._read_at is None:
                raise RetryableError(f"no token: {self._file}: {failure}") from failure
            log.warning("%s: the last token is used: %s", self._file, failure)
            self._read_at = (0, 0, 0)
        return self._text


def checked(text: str) -> str:
    """ValueError for what cannot be sent as metadata."""
    if not text.isascii() or (text and not text.isprintable()) or text.strip() != text:
        raise ValueError("a token must be printable ASCII")
    return text


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        raw = opened.read(TOKEN_BYTES_MAX + 1)
    if len(raw) > TOKEN_BYTES_MAX:
        raise ValueError(f"a token has at most {TOKEN_BYTES_MAX} bytes")
    return checked(raw.decode("ascii").strip())

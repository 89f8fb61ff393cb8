"""The tokens that a caller must show one of, in the header `authentication`.

Several are valid at once, so that a token can be replaced without a moment in which agents are
refused: add the new one to the file, give it to the agents, take the old one out. The file is
looked at for each call, which costs a `stat`, and read when it has changed; a call that is open
when its token is taken out goes on to its end.

    # agents in the shop            one token in a line, spaces around it left out;
    kqI9…                           empty lines and those that begin with # are passed over

Tokens are held and compared as SHA-256 digests, with all of them and to the end: how long that
takes says nothing about any of them. A satellite that asks for none does not import this.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from pathlib import Path
from typing import Final

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import ConfigError
from skyfarer.base.units import KIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_CALLS_DENIED

log = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 64 * KIB
TOKENS_MAX: Final = 1000
LOG_INTERVAL_S: Final = 10.0
MISSING: Final = "missing_token"
WRONG: Final = "wrong_token"

_Fingerprint = tuple[int, int, int]


class Tokens:
    """Of one program: its servers share it, on one thread. Reads no file before `start`.

    While the file cannot be read, or has no token in it, those it had before stay valid, and that
    is said once.
    """

    def __init__(
        self, text: str, file: Path | None, registry: Registry, clock: Clock | None = None
    ) -> None:
        self._fixed = (_digest(_checked(text)),) if text else ()
        self._file = file
        self._registry = registry
        self._clock = clock or SystemClock()
        self._valid: tuple[bytes, ...] = ()
        self._read_at: _Fingerprint | None = None
        self._silent_until_s = 0.0
        self._unsaid = 0

    def start(self) -> None:
        """ConfigError when the file cannot be used: nobody could be let in. Safe twice."""
        if self._file is not None:
            try:
                self._look(self._file)
            except (OSError, ValueError) as failure:
                raise ConfigError(f"tokens: {_blame(self._file, failure)}") from failure

    def admits(self, shown: bytes | None) -> bool:
        """Whether a caller that showed this may go on; counted and logged when not."""
        self._follow()
        if shown is None:
            return self._deny(MISSING)
        digest, found = _digest(shown.strip()), False
        for valid in (*self._fixed, *self._valid):
            found |= hmac.compare_digest(digest, valid)
        return found or self._deny(WRONG)

    def _deny(self, reason: str) -> bool:
        self._registry.inc(RECEIVER_CALLS_DENIED, reason=reason)
        self._unsaid += 1
        now_s = self._clock.monotonic_s()
        if now_s >= self._silent_until_s:
            log.warning("calls refused for their token: %d, the last: %s", self._unsaid, reason)
            self._silent_until_s, self._unsaid = now_s + LOG_INTERVAL_S, 0
        return False

    def _follow(self) -> None:
        if self._file is None:
            return
        try:
            self._look(self._file)
        except (OSError, ValueError) as failure:
            if self._read_at is not None:
                log.error("the tokens before stay valid: %s", _blame(self._file, failure))
            self._read_at = None

    def _look(self, file: Path) -> None:
        """Reads the file if it is not the one read before, or if that could not be used."""
        found = file.stat()
        fingerprint = (found.st_mtime_ns, found.st_ino, found.st_size)
        if fingerprint != self._read_at:
            self._valid, self._read_at = _read(file), fingerprint


def _read(file: Path) -> tuple[bytes, ...]:
    with file.open("rb") as opened:
        raw = opened.read(FILE_BYTES_MAX + 1)
    if len(raw) > FILE_BYTES_MAX:
        raise ValueError(f"it has more than {FILE_BYTES_MAX} bytes")
    lines = [line.strip() for line in raw.decode("ascii").splitlines()]
    tokens = [_checked(line) for line in lines if line and not line.startswith("#")]
    if not 0 < len(tokens) <= TOKENS_MAX:
        raise ValueError(f"it has {len(tokens)} tokens, and must have from 1 to {TOKENS_MAX}")
    return tuple(map(_digest, tokens))


def _checked(token: str) -> bytes:
    """ValueError, without the token, for what no agent could send."""
    if not token.isascii() or not token.isprintable() or token != token.strip():
        raise ValueError("a token must be printable ASCII without spaces around it")
    return token.encode("ascii")


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _blame(file: Path, failure: Exception) -> str:
    """`decode` would show a part of the file."""
    if isinstance(failure, UnicodeDecodeError):
        return f"{file}: it is not all ASCII"
    reason = failure.strerror if isinstance(failure, OSError) else failure
    return f"{file}: {reason}"

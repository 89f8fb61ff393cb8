"""Flow control from end to end, for a call that is passed on."""

from __future__ import annotations

from collections.abc import Iterable

from skyfarer.wire.framing import PREFIX_BYTES


class Withheld:
    """The part of a stream's window that is given back when messages are taken, not when they come.

    What belongs to a message that is not complete yet is given back at once, since a message may
    be larger than the window.
    """

    __slots__ = ("_owed_bytes", "_waiting_bytes")

    def __init__(self) -> None:
        self._owed_bytes = 0
        self._waiting_bytes = 0

    def came(self, size: int, messages: Iterable[bytes]) -> int:
        """So much was received and completed these; returns how much to give back now."""
        self._owed_bytes += size
        self._waiting_bytes += sum(PREFIX_BYTES + len(message) for message in messages)
        return self._release()

    def taken(self, message: bytes) -> int:
        self._waiting_bytes -= PREFIX_BYTES + len(message)
        return self._release()

    def _release(self) -> int:
        kept = min(self._owed_bytes, self._waiting_bytes)
        released, self._owed_bytes = self._owed_bytes - kept, kept
        return released

"""One record on its way through the filters, and what they may do beside changing it."""

from __future__ import annotations

from typing import Any, Final

from skyfarer.satellite.contracts import Unfit
from skyfarer.satellite.processors.decoding import decode

EMITTED_MAX: Final = 64


class Event:
    """Belongs to the chain; a filter may keep neither it nor its payload, which is a view of the
    queue's files."""

    __slots__ = ("_changed", "_message", "kind", "payload", "sequence")

    def __init__(self, sequence: int, kind: int, payload: bytes | memoryview) -> None:
        self.sequence = sequence
        self.kind = kind
        self.payload = payload
        self._message: Any = None
        self._changed = False

    @property
    def message(self) -> Any:
        """The protobuf message, decoded once for all filters; Unfit when it cannot be. Whoever
        changes it calls `changed`."""
        message = self._message
        if message is None:
            message = self._message = decode(self.kind, self.payload)
        return message

    def changed(self) -> None:
        """The message is no longer what the payload says."""
        self._changed = True

    def become(self, kind: int, message: Any) -> None:
        """Another kind of record in place of this one; filters behind see it as that kind."""
        self.kind = kind
        self._message = message
        self._changed = True

    def made(self, kind: int, message: Any) -> Event:
        """Another event, made from this one."""
        event = Event(self.sequence, kind, b"")
        event.become(kind, message)
        return event

    def encoded(self) -> bytes | memoryview:
        """The payload itself unless something was changed."""
        return self._message.SerializeToString() if self._changed else self.payload


class Context:
    """What the filters of one pass share. `now_s` is the monotonic clock, read once per batch."""

    __slots__ = ("_emitted", "now_s")

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s
        self._emitted: list[tuple[int, Any]] = []

    def emit(self, kind: int, message: Any) -> None:
        """One more record, made from the event in hand; nothing of it is sent if `apply` raises.

        At most EMITTED_MAX for one event: above it Unfit, as for any failure.
        """
        if len(self._emitted) >= EMITTED_MAX:
            raise Unfit("emitted_too_many", f"more than {EMITTED_MAX} events were made from one")
        self._emitted.append((kind, message))

    def take_emitted(self) -> list[tuple[int, Any]]:
        """The chain's own: what was emitted since it last asked."""
        emitted = self._emitted
        if emitted:
            self._emitted = []
        return emitted

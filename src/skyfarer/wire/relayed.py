"""The bounds on calls that wait for the upstream, over all connections of a server."""

from __future__ import annotations

from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_RELAYED
from skyfarer.wire.status import Status, StatusError


class Relayed:
    """All calls on their way through, over all connections of a server."""

    def __init__(self, calls_max: int, bytes_max: int, registry: Registry) -> None:
        self._calls_max = calls_max
        self._bytes_max = bytes_max
        self._registry = registry
        self.calls = 0
        self.bytes = 0

    def enter(self) -> None:
        if self.calls >= self._calls_max:
            raise _too_many("calls")
        self.calls += 1
        self._registry.inc(RECEIVER_RELAYED)

    def leave(self) -> None:
        self.calls -= 1
        self._registry.inc(RECEIVER_RELAYED, -1)

    def hold(self, size: int) -> None:
        """Counted even when it is refused: the passage lets go of all it held at its end."""
        self.bytes += size
        if self.bytes > self._bytes_max:
            raise _too_many("bytes")

    def release(self, size: int) -> None:
        self.bytes -= size


class Share:
    """What one call holds of the bounds; `leave` gives all of it back. Safe twice."""

    def __init__(self, relayed: Relayed) -> None:
        self._relayed = relayed
        self._inside = False
        self._bytes = 0

    def enter(self) -> None:
        self._relayed.enter()
        self._inside = True

    def hold(self, size: int) -> None:
        self._bytes += size
        self._relayed.hold(size)

    def release(self, size: int) -> None:
        self._bytes -= size
        self._relayed.release(size)

    def leave(self) -> None:
        self.release(self._bytes)
        if self._inside:
            self._inside = False
            self._relayed.leave()


def _too_many(what: str) -> StatusError:
    return StatusError(
        Status.RESOURCE_EXHAUSTED, f"too many {what} wait for the upstream, try again"
    )

"""The bound on frames that cost us work and bring nothing: pings, settings, resets, empty DATA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skyfarer.base.units import KIB

CONTROL_FRAMES_MAX: Final = 1000
CONTROL_FRAMES_PER_S: Final = 100
# Data and answered calls earn the control frames that ordinarily go with them.
_BYTES_PER_CONTROL_FRAME: Final = 1 * KIB
_CONTROL_FRAMES_PER_CALL: Final = 4
_CONTROL_FRAMES_PER_KIB_SENT: Final = 4  # a peer opens two windows for what it has read


class ControlGuard:
    """A leaky bucket of one connection's control frames, less those that useful work has earned."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._asked_at = time()
        self._frames = 0.0

    def control(self) -> None:
        self._frames += 1

    def data(self, size: int, ended: bool) -> None:
        if size == 0 and not ended:
            self._frames += 1
        elif self._frames > 0:
            self._frames -= size / _BYTES_PER_CONTROL_FRAME

    def sent(self, size: int) -> None:
        self._frames -= size / KIB * _CONTROL_FRAMES_PER_KIB_SENT

    def answered(self) -> None:
        self._frames -= _CONTROL_FRAMES_PER_CALL

    def flooded(self) -> bool:
        """To be asked once per read."""
        now = self._time()
        leaked = (now - self._asked_at) * CONTROL_FRAMES_PER_S
        self._asked_at = now
        self._frames = max(0.0, self._frames - leaked)
        return self._frames > CONTROL_FRAMES_MAX

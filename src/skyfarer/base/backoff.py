"""How long to wait before the next attempt.

Waits grow by a factor up to a maximum. The jitter spreads the attempts of many sidecars that
lost the same backend at the same moment; randomness comes in, so a test may fix the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class BackoffSettings:
    initial_s: float = 0.1
    maximum_s: float = 10.0
    multiplier: float = 2.0
    jitter: float = 0.2  # a wait of w becomes one between w * (1 - jitter) and w * (1 + jitter)

    def __post_init__(self) -> None:
        if not 0 < self.initial_s <= self.maximum_s:
            raise ValueError("initial_s must be above 0 and at most maximum_s")
        if self.multiplier < 1 or not 0 <= self.jitter < 1:
            raise ValueError("multiplier must be at least 1, jitter from 0 to below 1")


class Backoff:
    """Not for sharing between threads: one caller, one series of attempts."""

    def __init__(self, settings: BackoffSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._wait_s = settings.initial_s

    def next_s(self) -> float:
        """The wait before the next attempt; never above `maximum_s`, jitter included."""
        settings, wait_s = self._settings, self._wait_s
        self._wait_s = min(wait_s * settings.multiplier, settings.maximum_s)
        spread = self._random.uniform(-settings.jitter, settings.jitter)
        return min(wait_s * (1 + spread), settings.maximum_s)

    def reset(self) -> None:
        """After a success: the next failure starts again from `initial_s`."""
        self._wait_s = self._settings.initial_s

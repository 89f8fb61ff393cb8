"""Which segments are stored. What is measured of them never depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

RATE_MAX: Final = 10_000
NEVER_MS: Final = -1


@dataclass(frozen=True)
class Policy:
    """Of each 10,000 traces `rate` are stored, and segments that take `duration_ms` or longer;
    NEVER_MS: none for that reason. What a service's policy leaves None is the default's."""

    rate: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True)
class Sampling:
    """With `errors`, segments that have failed are stored whatever their policy says."""

    default: Policy = Policy(RATE_MAX, NEVER_MS)
    services: Mapping[str, Policy] = field(default_factory=dict)
    errors: bool = True

    def rate(self, service: str) -> int:
        own = self.services.get(service, self.default).rate
        return _told(own, self.default.rate, RATE_MAX)

    def duration_ms(self, service: str) -> int:
        own = self.services.get(service, self.default).duration_ms
        return _told(own, self.default.duration_ms, NEVER_MS)

    @property
    def everything(self) -> bool:
        """Whether no segment is ever left out."""
        return all(self.rate(name) >= RATE_MAX for name in ("", *self.services))


def _told(own: int | None, default: int | None, otherwise: int) -> int:
    return next((value for value in (own, default) if value is not None), otherwise)

"""What an operator may set about the records of traces; defaults are SkyWalking's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RATE_MAX = 10_000


@dataclass(frozen=True)
class Policy:
    """What is None is left to the default policy."""

    rate: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True)
class Keeping:
    """`failed_by`: which spans make a segment fail. Thresholds in milliseconds, by the type in
    lower case or by `default`."""

    failed_by: str = "FROM_SPAN_STATUS"
    searchable: tuple[str, ...] = (
        *("http.method", "http.status_code", "rpc.status_code", "db.type", "db.instance"),
        *("mq.queue", "mq.topic", "mq.broker"),
    )
    policy: Policy = Policy(RATE_MAX, -1)
    services: Mapping[str, Policy] = field(default_factory=dict)
    errors: bool = True
    database_ms: Mapping[str, int] = field(default_factory=lambda: {"default": 200, "mongodb": 100})
    cache_read_ms: Mapping[str, int] = field(default_factory=lambda: {"default": 20, "redis": 10})
    cache_write_ms: Mapping[str, int] = field(default_factory=lambda: {"default": 20, "redis": 10})

    def rate(self, service: str) -> int:
        own = self.services.get(service, Policy()).rate
        chosen = self.policy.rate if own is None else own
        return RATE_MAX if chosen is None else chosen

    def duration_ms(self, service: str) -> int:
        own = self.services.get(service, Policy()).duration_ms
        chosen = self.policy.duration_ms if own is None else own
        return -1 if chosen is None else chosen

"""Which metrics tell how a service does: its agents measure it, or the agents that call it do.

A database, cache or queue has no agent. It is known by the calls that services made to it, and
those have metrics of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skyfarer.ui.model import Service, count_text, latency_text

ROWS_MAX: Final = 10
VIRTUAL: Final = "VIRTUAL_"
UNDEFINED: Final = "UNDEFINED"


@dataclass(frozen=True)
class Ranking:
    """A list of what a service has, by one of its figures."""

    title: str
    expression: str
    head: str
    shown: Callable[[int | None], str]


@dataclass(frozen=True)
class Kind:
    cpm: str
    resp_time: str
    sla: str
    percentile: str
    slow: Ranking
    busy: Ranking | None
    apdex: str = ""


def _slowest(title: str, metric: str, head: str = "average") -> Ranking:
    return Ranking(title, f"top_n({metric}, {ROWS_MAX}, des)", head, latency_text)


def _busiest(title: str, metric: str, head: str) -> Ranking:
    return Ranking(title, f"top_n({metric}, {ROWS_MAX}, des)", head, count_text)


GENERAL: Final = Kind(
    *("service_cpm", "service_resp_time", "service_sla", "service_percentile"),
    slow=_slowest("Slowest endpoints", "endpoint_resp_time"),
    busy=_busiest("Busiest endpoints", "endpoint_cpm", "calls / min"),
    apdex="service_apdex",
)
_DATABASE: Final = Kind(
    *("database_access_cpm", "database_access_resp_time"),
    *("database_access_sla", "database_access_percentile"),
    slow=_slowest("Slowest statements", "top_n_database_statement", "once"),
    busy=None,
)
_CACHE: Final = Kind(
    *("cache_access_cpm", "cache_access_resp_time", "cache_access_sla", "cache_access_percentile"),
    slow=_slowest("Slowest reads", "top_n_cache_read_command", "once"),
    busy=_slowest("Slowest writes", "top_n_cache_write_command", "once"),
)
_QUEUE: Final = Kind(
    *("mq_service_consume_cpm", "mq_service_consume_latency"),
    *("mq_service_consume_sla", "mq_service_consume_percentile"),
    slow=_slowest("Slowest topics", "mq_endpoint_consume_latency"),
    busy=_busiest("Busiest topics", "mq_endpoint_consume_cpm", "messages / min"),
)
_BY_LAYER: Final = {
    "VIRTUAL_DATABASE": _DATABASE,
    "VIRTUAL_CACHE": _CACHE,
    "VIRTUAL_MQ": _QUEUE,
}


def kind_of(service: Service) -> Kind:
    """Of what is only conjectured and none of these, nothing is measured: its values are empty."""
    return next((_BY_LAYER[one] for one in service.layers if one in _BY_LAYER), GENERAL)


def layer_text(service: Service) -> str:
    """In words: `database`, `mq`; an address that nobody answered for is `unknown`."""
    named = [one for one in service.layers if one != UNDEFINED]
    words = [one.removeprefix(VIRTUAL).replace("_", " ").lower() for one in named]
    return " · ".join(words) or "unknown"

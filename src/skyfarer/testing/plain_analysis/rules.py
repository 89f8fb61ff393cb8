"""What an operator may set and the rules of calls look at; defaults are SkyWalking's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Alias: TypeAlias = tuple[str, str]
"""The service and the instance that an address stands for."""


@dataclass(frozen=True)
class Rules:
    """`gateways` are addresses, host:port. `aliases`: those that storage knew before the batch.
    `providers` and `prices` (of a million tokens in and out) are by prefixes of models' names.
    Names longer than their `chars_max` are cut."""

    gateways: frozenset[str] = frozenset()
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    no_upstream_components: frozenset[int] = frozenset({6000, 9000})
    trace_analysis: bool = True
    providers: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    service_chars_max: int = 70
    instance_chars_max: int = 70
    endpoint_chars_max: int = 150

    def service(self, name: str) -> str:
        return name[: self.service_chars_max]

    def instance(self, name: str) -> str:
        return name[: self.instance_chars_max]

    def endpoint(self, name: str) -> str:
        return name[: self.endpoint_chars_max]

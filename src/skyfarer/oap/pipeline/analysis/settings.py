"""What an operator may decide about the analysis of traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from skyfarer.oap.core.expiry import Retention
from skyfarer.oap.core.gen_ai import GenAIModels
from skyfarer.oap.core.sampling import Sampling

Strategy: TypeAlias = Literal["FROM_SPAN_STATUS", "FROM_ENTRY_SPAN", "FROM_FIRST_SPAN"]


@dataclass(frozen=True)
class NamingSettings:
    service_chars_max: int = 70
    instance_chars_max: int = 70
    endpoint_chars_max: int = 150


@dataclass(frozen=True)
class SlowSettings:
    """Milliseconds by type, in lower case, or by `default`; what takes longer than them is slow,
    and what has none never is."""

    database_ms: Mapping[str, int] = field(default_factory=dict)
    cache_read_ms: Mapping[str, int] = field(default_factory=dict)
    cache_write_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptSettings:
    """`failed_by`: the spans that make a segment fail: any, entries, or the one numbered 0."""

    failed_by: Strategy = "FROM_SPAN_STATUS"
    searchable_tags: tuple[str, ...] = ()
    searchable_log_tags: tuple[str, ...] = ()
    slow: SlowSettings = field(default_factory=SlowSettings)


@dataclass(frozen=True)
class AnalysisSettings:
    """`gateways` are the addresses (`host:port`) of gateways that no agent watches.

    `no_upstream_components` are agents that do not know which instance they called. Without
    `trace_analysis` only virtual services are made of spans, and what is stored of segments.
    `apdex_ms` is Apdex's T by the name of a service, or by `default`. `kept` and `sampling` say
    what is stored of which segments.
    """

    naming: NamingSettings = field(default_factory=NamingSettings)
    gateways: frozenset[str] = frozenset()
    no_upstream_components: tuple[int, ...] = (6000, 9000)
    trace_analysis: bool = True
    retention: Retention = field(default_factory=lambda: Retention(7, 7))
    apdex_ms: Mapping[str, int] = field(default_factory=dict)
    kept: KeptSettings = field(default_factory=KeptSettings)
    sampling: Sampling = field(default_factory=Sampling)
    gen_ai: GenAIModels = field(default_factory=GenAIModels)

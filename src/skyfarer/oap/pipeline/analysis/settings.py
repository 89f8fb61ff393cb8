"""What an operator may decide about the analysis of traces."""

from __future__ import annotations

from dataclasses import dataclass, field

from skyfarer.oap.pipeline.analysis.entry import NamingSettings


@dataclass(frozen=True)
class AnalysisSettings:
    """`gateways` are the addresses (`host:port`) of gateways that no agent watches.

    `no_upstream_components` are agents that do not know which instance they called. Without
    `trace_analysis` only virtual services are made of spans, and what is stored of segments.
    """

    naming: NamingSettings = field(default_factory=NamingSettings)
    gateways: frozenset[str] = frozenset()
    no_upstream_components: tuple[int, ...] = (6000, 9000)
    trace_analysis: bool = True

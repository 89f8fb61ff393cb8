"""What an operator may decide about the analysis of traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skyfarer.oap.core.expiry import Retention
from skyfarer.oap.core.sampling import Sampling
from skyfarer.oap.pipeline.analysis.entry import NamingSettings
from skyfarer.oap.pipeline.analysis.kept import KeptSettings


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

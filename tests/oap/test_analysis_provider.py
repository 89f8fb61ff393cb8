"""agent-analyzer.default: what the analysis is told of its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.providers.analysis import AnalysisProvider
from skyfarer.oap.boot.providers.core import CoreProvider, Node
from skyfarer.oap.boot.providers.receivers import IngestQueue
from skyfarer.oap.boot.providers.ttl import retention_of
from skyfarer.oap.boot.settings import AnalyzerConfig, CoreConfig
from skyfarer.oap.core.expiry import Retention, RetentionOverride
from skyfarer.oap.core.modules import Offer
from skyfarer.oap.oal.plan import Plan


@pytest.fixture
def core(tmp_path: Path) -> CoreConfig:
    return CoreConfig(
        serviceNameMaxLength=1,
        instanceNameMaxLength=2,
        endpointNameMaxLength=3,
        recordDataTTL=4,
        metricsDataTTL=9,
        dataDirectory=tmp_path / "data",
    )


@pytest.fixture
def node(core: CoreConfig) -> Node:
    provider = CoreProvider(core)
    provider.prepare(Offer(provider))
    return provider.node


def test_the_analysis_is_started_as_it_is_configured(node: Node, tmp_path: Path) -> None:
    (tmp_path / "own.oal").write_text("own_cpm = from(Service.*).cpm();")
    (tmp_path / "gateways.yml").write_text("gateways: [{name: a, instances: [{host: b}]}]")
    (tmp_path / "apdex.yml").write_text("default: 400")
    (tmp_path / "gen-ai.yml").write_text("providers: [{provider: me, prefix-match: [my]}]")
    (tmp_path / "sampling.yml").write_text("services: [{name: a, rate: 7}]")
    provider = AnalysisProvider(
        AnalyzerConfig(
            traceAnalysis=False,
            noUpstreamRealAddressAgents=(7,),
            oalActiveFiles=("virtual-gen-ai",),
            oalFiles=(tmp_path,),
            gatewaysFile=tmp_path / "gateways.yml",
            apdexThresholdFile=tmp_path / "apdex.yml",
            genAIConfigFile=tmp_path / "gen-ai.yml",
            traceSamplingPolicySettingsFile=tmp_path / "sampling.yml",
            sampleRate=9,
            forceSampleErrorSegment=False,
            segmentStatusAnalysisStrategy="FROM_FIRST_SPAN",
            slowDBAccessThreshold="default:1",
            slowCacheReadThreshold="Redis:2",
            slowCacheWriteThreshold="",
            decoder="protobuf",
        )
    )
    offer, queue = Offer(provider), IngestQueue()
    queue.directory = tmp_path / "ingest"
    provider.prepare(offer)
    kept = retention_of(node, RetentionOverride(record_days=5))
    settings = provider.settings(node, queue, kept)

    analysis, offered = settings.analysis, offer.complete()[Plan]
    assert analysis.naming == type(analysis.naming)(1, 2, 3)
    assert analysis.gateways == {"b:80"}
    assert (analysis.no_upstream_components, analysis.trace_analysis) == ((7,), False)
    assert (analysis.retention, analysis.apdex_ms) == (Retention(5, 9, node.zone), {"default": 400})
    assert (analysis.sampling.rate("a"), analysis.sampling.rate("b")) == (7, 9)
    assert not analysis.sampling.errors
    assert analysis.gen_ai.providers == {"my": "me"}
    assert analysis.kept.failed_by == "FROM_FIRST_SPAN"
    assert "http.method" in analysis.kept.searchable_tags
    slow = analysis.kept.slow
    assert (slow.database_ms, slow.cache_read_ms, slow.cache_write_ms) == (
        *({"default": 1}, {"redis": 2}, {}),
    )
    assert isinstance(offered, Plan) and "GenAIProviderAccess" in str(offered)
    assert settings.plan is offered
    assert settings.decoder == "protobuf"


@pytest.mark.parametrize(
    "key",
    [
        *("gatewaysFile", "apdexThresholdFile", "genAIConfigFile"),
        *("traceSamplingPolicySettingsFile", "oalFiles"),
    ],
)
def test_a_file_that_is_not_there_is_told_before_anything_listens(key: str) -> None:
    absent = Path("/nowhere/absent.yml")
    provider = AnalysisProvider(
        AnalyzerConfig(**{key: (absent,) if key == "oalFiles" else absent})  # type: ignore[arg-type]
    )
    with pytest.raises(ConfigError, match=r"absent\.yml cannot be read: No such file"):
        provider.prepare(Offer(provider))

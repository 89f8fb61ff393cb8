from __future__ import annotations

from contracts.metrics_contract import MetricsContract


class TestPostgresMetrics(MetricsContract):
    pass

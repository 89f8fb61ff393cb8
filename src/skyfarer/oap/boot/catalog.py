"""The built-in providers: module → provider → constructor and configuration.

A constructor takes its bound configuration and nothing else. Its module is imported when it is
chosen, and not before; the configuration is a light class of `settings`. Others add providers as
entry points of the group `skyfarer.<module>`; their constructors carry the configuration's class
as `config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from skyfarer.base.plugins import Catalog
from skyfarer.oap.boot.settings import (
    AnalyzerConfig,
    CoreConfig,
    DuckDBConfig,
    NoKeys,
    PostgreSQLConfig,
    PrometheusConfig,
    SharingServerConfig,
)

_PROVIDERS: Final = "skyfarer.oap.boot.providers"

ROWS: Final[Mapping[str, Mapping[str, str]]] = {
    "cluster": {"standalone": f"{_PROVIDERS}.cluster:StandaloneProvider"},
    "core": {"default": f"{_PROVIDERS}.core:CoreProvider"},
    "storage": {
        "duckdb": f"{_PROVIDERS}.storage:DuckDBProvider",
        "postgresql": f"{_PROVIDERS}.storage_postgresql:PostgreSQLProvider",
    },
    "agent-analyzer": {"default": f"{_PROVIDERS}.analysis:AnalysisProvider"},
    "receiver-sharing-server": {"default": f"{_PROVIDERS}.receivers:ReceiverProvider"},
    "query": {"graphql": f"{_PROVIDERS}.query:QueryProvider"},
    "telemetry": {"prometheus": f"{_PROVIDERS}.telemetry:TelemetryProvider"},
}

CONFIGS: Final[Mapping[tuple[str, str], type[Any]]] = {
    ("cluster", "standalone"): NoKeys,
    ("core", "default"): CoreConfig,
    ("storage", "duckdb"): DuckDBConfig,
    ("storage", "postgresql"): PostgreSQLConfig,
    ("agent-analyzer", "default"): AnalyzerConfig,
    ("receiver-sharing-server", "default"): SharingServerConfig,
    ("query", "graphql"): NoKeys,
    ("telemetry", "prometheus"): PrometheusConfig,
}

EXTRAS: Final[Mapping[str, str]] = dict.fromkeys(
    ("duckdb", "google", "graphql", "numpy", "ptars", "pyarrow", "pyspark", "starlette", "uvicorn"),
    "oap",
) | dict.fromkeys(("pgpq", "psycopg", "psycopg_pool"), "postgresql")

CATALOG: Final = Catalog(ROWS, EXTRAS)
IMPLIED: Final = Catalog({"ttl": {"default": f"{_PROVIDERS}.ttl:TtlProvider"}}, EXTRAS)
"""What no file names, as its keys are core's; it is there when all that it requires is."""


def config_type(catalog: Catalog, module: str, provider: str) -> type[Any]:
    """Without an import for a built-in provider."""
    built_in = CONFIGS.get((module, provider))
    return built_in or catalog.resolve(module, provider).config

"""What the pipeline has stored of a queue, read from the tables of the embedded storage."""

from __future__ import annotations

from typing import Any

from golden.model import Facts, shown
from golden.on_spark import naming
from oap.pipeline.bench import Bench
from skyfarer.oap.core.expiry import Retention
from skyfarer.oap.core.gen_ai import GenAIModels
from skyfarer.oap.core.sampling import Policy, Sampling
from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.streams.metrics import RELATIONS, SOURCES
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings, KeptSettings, SlowSettings
from skyfarer.oap.storage.embedded.metrics import KEYS
from skyfarer.oap.storage.embedded.schema import day_tables
from skyfarer.testing.plain_analysis import Rules
from skyfarer.testing.plain_analysis.keeping import Keeping
from skyfarer.testing.plain_analysis.records import Records

_SEGMENT = """segment_id AS id, trace_id AS trace, service_id, service_instance_id AS instance_id,
    endpoint_id, start_time AS start, time_bucket AS second, latency, is_error AS error, tags,
    data_binary AS data"""
_SLOW = """id, entity_id, statement, latency, trace_id AS trace, timestamp AS start,
    time_bucket AS second"""
_TAG = "time_bucket // 10000 AS day, tag_key || '=' || tag_value AS tag"


def settings_of(rules: Rules, keeping: Keeping, retention: Retention) -> AnalysisSettings:
    services = {name: Policy(one.rate, one.duration_ms) for name, one in keeping.services.items()}
    policy = Policy(keeping.policy.rate, keeping.policy.duration_ms)
    slow = SlowSettings(keeping.database_ms, keeping.cache_read_ms, keeping.cache_write_ms)
    return AnalysisSettings(
        naming=naming(rules),
        gateways=rules.gateways,
        no_upstream_components=tuple(sorted(rules.no_upstream_components)),
        trace_analysis=rules.trace_analysis,
        retention=retention,
        kept=KeptSettings(keeping.failed_by, keeping.searchable, slow=slow),  # type: ignore[arg-type]
        sampling=Sampling(policy, services, keeping.errors),
        gen_ai=GenAIModels(rules.providers, rules.prices),
    )


def records_in(bench: Bench) -> Records:
    slow = [{**one, "what": what.value} for what in Slow for one in _all(bench, what.value, _SLOW)]
    tags = {(one["day"], one["tag"]) for one in _all(bench, "tag_autocomplete", _TAG)}
    return Records(_all(bench, "segment", _SEGMENT), slow, tags)


def _all(bench: Bench, model: str, columns: str) -> list[dict[str, Any]]:
    """The rows of all its days."""
    cursor = bench.storage._cursor()
    return [
        row
        for table in day_tables(cursor, model)
        for row in cursor.sql(f"SELECT {columns} FROM {table}").to_arrow_table().to_pylist()
    ]


def facts_in(bench: Bench, plan: Plan) -> Facts:
    """As `golden.model` has them."""
    return {**_metrics(bench, plan), **_relations(bench), **_traffic(bench), **_aliases(bench)}


def _metrics(bench: Bench, plan: Plan) -> Facts:
    return {
        ("metrics", of.source, row["entity_id"], row["time_bucket"], name): _value(value)
        for of in plan.sources
        for row in _all(bench, SOURCES[of.source].name, "*")
        for name, value in row.items()
        if value is not None and name not in KEYS
    }


def _relations(bench: Bench) -> Facts:
    found: Facts = {}
    for table in sorted(stream.name for stream in RELATIONS.values()):
        for row in _all(bench, table, "*"):
            told = row.get("component_ids", row.get("component_id"))
            found[table, row["entity_id"], row["time_bucket"]] = told
    return found


def _traffic(bench: Bench) -> Facts:
    columns = {"service": "layer, time_bucket, 0", "instance": "NULL, time_bucket, last_ping"}
    columns["endpoint"] = columns["instance"]
    cursor, found = bench.storage._cursor(), dict[tuple[Any, ...], Any]()
    for kind, told in columns.items():
        table = f"{kind}_traffic"
        rows = cursor.execute(f"SELECT id, name, {told} FROM {table}").fetchall()
        found |= {(table, identifier): (shown(name), *rest) for identifier, name, *rest in rows}
    return found


def _aliases(bench: Bench) -> Facts:
    query = """SELECT address, time_bucket, last_update_time_bucket, represent_service_name,
        represent_service_instance_name FROM network_address_alias"""
    rows = bench.storage._cursor().execute(query).fetchall()
    return {("network_address_alias", address): tuple(told) for address, *told in rows}


def _value(value: Any) -> Any:
    return {one["key"]: one["value"] for one in value} if isinstance(value, list) else value

"""Every rule of trace analysis, and the attributes that metrics read of its rows.

A case lives in a minute of its own, so that a single job of Spark's runs them all.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from oap.pipeline.bench import NOON
from oap.pipeline.traffic_cases import CASES, TAGGED, Case
from skyfarer.oap.core.entities import ENTITY_COLUMNS, TRACED
from skyfarer.oap.core.ids import service_id
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.oal.compiler import Text, plan_of, shipped
from skyfarer.oap.oal.plan import Field
from skyfarer.oap.oal.sources import SOURCES, Type
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings, NamingSettings
from skyfarer.oap.pipeline.analysis.traffic import Wanted, attribute, emitted, wanted_by
from skyfarer.oap.pipeline.sources.decode import PtarsDecoder
from skyfarer.oap.pipeline.sources.shapes import SEGMENT
from skyfarer.wire.messages import SegmentObject

SETTINGS = AnalysisSettings(NamingSettings(12, 11, 13), gateways=frozenset({"gate:80"}))
WANTED = Wanted(("k", "transmission.latency"), tags=True, ends=True)
ALIASES = {"pay:80": ("pay", "pay-1"), "12345678901234": ("never", "found")}
VIRTUAL = {"DatabaseAccess", "CacheAccess", "MQAccess", "MQEndpointAccess", "ServiceMeta"}
ATTRIBUTES = ("latency", "status", "http_code", "rpc_code", "type", "operation")
Rows = dict[str, list[dict[str, Any]]]


def shown(row: dict[str, Any]) -> str:
    def end(prefix: str) -> str:
        names = ((key[0], row[prefix + key]) for key in ("instance", "endpoint"))
        within = [f"{key}={name}" for key, name in names if name]
        return " ".join([row[f"{prefix}service"], Layer(row[f"{prefix}layer"]).name, *within])

    words = [row["source"], end("")]
    if row["detect_point"]:
        words.append(f"< {end('from_')} {row['detect_point']} {row['component']}")
    words += [f"{row['latency']}ms"] if row["latency"] else []
    words += ["ok"] if row["status"] else []
    words += [str(row["http_code"])] if row["http_code"] else []
    words += [row[name] for name in ("rpc_code", "type", "operation") if row[name] is not None]
    words += [f"late={row['transmission_latency']}"] if row["transmission_latency"] else []
    return " ".join(words)


def expected(case: Case) -> Counter[str]:
    return Counter(row.replace("*", case.call) for row in case.rows)


def payload(number: int, case: Case) -> bytes:
    start = NOON + number * MINUTE_MS
    segment = SegmentObject(traceSegmentId=str(number), spans=case.spans)
    segment.service, segment.serviceInstance = case.service, case.instance
    for one in segment.spans:
        one.startTime += start
        one.endTime += start
    return segment.SerializeToString()


def decoded(spark: SparkSession) -> DataFrame:
    """Each case, then the first of them again as one that was refused, and what is no segment."""
    cases = [*CASES.values()]
    payloads = [payload(*case) for case in enumerate([*cases, cases[0]])]
    batch = PtarsDecoder(SEGMENT).decode_all(pa.array(payloads, pa.binary()))
    columns = {
        "segment": pa.array([*batch.to_pylist(), None], pa.struct(list(batch.schema))),
        "reason": pa.array([*[None] * len(cases), "incomplete", None], pa.string()),
    }
    return spark.createDataFrame(pa.table(columns))


def by_case(rows: DataFrame) -> Rows:
    found: Rows = {name: [] for name in CASES}
    names = [*CASES, "refused"]
    for row in rows.toArrow().to_pylist():
        found.setdefault(names[row["minute"] - NOON // MINUTE_MS], []).append(row)
    return found


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Rows:
    names = [*zip(*ALIASES.values(), strict=True)]
    table = {"address": [*ALIASES], "alias_service": names[0], "alias_instance": names[1]}
    aliases = spark.createDataFrame(pa.table({key: list(of) for key, of in table.items()}))
    return by_case(emitted(decoded(spark), SETTINGS, WANTED, aliases))


@pytest.mark.parametrize("name", CASES)
def test_the_rows_of(rows: Rows, name: str) -> None:
    assert Counter(map(shown, rows[name])) == expected(CASES[name])


def test_what_was_refused_says_nothing(rows: Rows) -> None:
    assert rows.keys() == CASES.keys()


def test_without_trace_analysis_only_virtual_services_are_left(
    spark: SparkSession, rows: Rows
) -> None:
    settings = AnalysisSettings(SETTINGS.naming, trace_analysis=False)
    found = emitted(decoded(spark), settings, Wanted(), None)
    assert found.columns == [
        *("source", "minute", *ENTITY_COLUMNS, *ATTRIBUTES, "transmission_latency")
    ]
    virtual = [shown(row) for case in rows.values() for row in case if is_virtual(row)]
    assert Counter(map(shown, found.toArrow().to_pylist())) == Counter(virtual)
    assert len(virtual) > 30


def is_virtual(row: dict[str, Any]) -> bool:
    meta = row["source"] == "EndpointMeta"
    return row["source"] in VIRTUAL or (meta and row["layer"] == Layer.VIRTUAL_MQ)


def test_tags_are_those_of_the_span_and_the_last_of_a_name_counts(rows: Rows) -> None:
    found = {
        (row["source"], row["endpoint"], row["detect_point"]): (row["tags"], row["tag_0"])
        for row in rows[TAGGED]
    }
    told = (["k:v", "k:1", "k:2"], "2")
    spoken = {key: (tags[:3], tag) for key, (tags, tag) in found.items() if tags is not None}
    assert spoken == {
        **{(source, "", ""): told for source in ("Service", "ServiceInstance")},
        ("Endpoint", "/a", ""): told,
        ("Endpoint", "/logic", ""): ([], None),
        ("Endpoint", "work", ""): (["k:4"], "4"),
    }
    assert all(tag is None for tags, tag in found.values() if tags is None)


def test_the_ends_of_a_call_are_known_to_rows_that_do_not_speak_of_them(rows: Rows) -> None:
    ends = ("dest_instance", "dest_endpoint", "source_instance")
    found = {
        (row["source"], row["detect_point"]): tuple(row[name] for name in ends)
        for row in rows[TAGGED]
        if row["endpoint"] in ("", "/a")
    }
    called = ("i", "/a", "User")
    assert found == {
        **{(source, ""): called for source in ("Service", "ServiceInstance", "Endpoint")},
        ("ServiceRelation", "SERVER"): called,
        ("ServiceInstanceRelation", "SERVER"): called,
        ("EndpointRelation", "SERVER"): called,
        ("ServiceRelation", "CLIENT"): ("a:1", None, "i"),
        ("ServiceInstanceRelation", "CLIENT"): ("a:1", None, "i"),
    }


def test_every_attribute_of_a_metric_is_found_in_a_row(spark: SparkSession) -> None:
    """A row with another value in each column: which of them is an attribute?"""
    names = ["service", "instance", "endpoint", "from_service", "from_instance", "from_endpoint"]
    names += ["detect_point", "rpc_code", "type", "operation", "tag_0", "tag_1"]
    names += ["dest_instance", "dest_endpoint", "source_instance"]
    row: dict[str, Any] = {name: f" {name}" for name in names}
    row |= {"layer": 14, "from_layer": 2, "component": 3, "latency": 4, "http_code": 5}
    row |= {"transmission_latency": 6, "status": True, "tags": ["a:b"]}
    value = attribute(WANTED)
    fields = {
        f"{source}.{path}": value(source, Field(path, of.type, "k" if path == "tag" else None))
        for source in TRACED
        for path, of in SOURCES[source].attributes.items()
    }
    columns = [
        (F.lit(UNSAID) if column is None else column).alias(name.replace(".", "|"))
        for name, column in fields.items()
    ]
    (found,) = (
        spark.createDataFrame(pa.Table.from_pylist([row])).select(*columns).toArrow().to_pylist()
    )
    for name, got in found.items():
        source, _, path = name.partition("|")
        told: Any = {**MEANT, **MEANT_OF.get(source, {})}.get(path, UNSAID)
        assert got == row.get(told, told), name


UNSAID = "no span says"
MEANT: dict[str, Any] = {
    "name": "service",
    "serviceName": "service",
    "latency": "latency",
    "rpcLatency": "latency",
    "transmissionLatency": "transmission_latency",
    "status": "status",
    "httpResponseStatusCode": "http_code",
    "rpcStatusCode": "rpc_code",
    "type": "type",
    "operation": "operation",
    "tags": "tags",
    "tag": "tag_0",
    "componentId": "component",
    "detectPoint": "detect_point",
    "layer": "VIRTUAL_DATABASE",
    "destLayer": "VIRTUAL_DATABASE",
    "sourceLayer": "GENERAL",
    "serviceId": service_id(" service", normal=False),
    "destServiceId": service_id(" service", normal=False),
    "sourceServiceId": service_id(" from_service"),
    "sourceServiceName": "from_service",
    "destServiceName": "service",
    "endpointName": "dest_endpoint",
    "serviceInstanceName": "dest_instance",
    "sourceServiceInstanceName": "source_instance",
    "destServiceInstanceName": "dest_instance",
    "endpoint": "dest_endpoint",
}
MEANT_OF: dict[str, dict[str, Any]] = {
    "ServiceInstance": {"name": "instance"},
    "Endpoint": {"name": "endpoint"},
    "ServiceInstanceRelation": {
        "sourceServiceInstanceName": "from_instance",
        "destServiceInstanceName": "instance",
    },
    "EndpointRelation": {
        "endpoint": "from_endpoint",
        "serviceName": "from_service",
        "serviceInstanceName": "source_instance",
        "childEndpoint": "endpoint",
        "childServiceName": "service",
        "childServiceInstanceName": "dest_instance",
    },
    "MQEndpointAccess": {"name": "endpoint", "endpoint": "endpoint"},
}


def test_only_what_metrics_ask_for_is_carried_along() -> None:
    assert wanted_by(plan_of(shipped())) == Wanted(("transmission.latency",))
    text = """
        a = from(Service.*).filter(tag["z"] == "1").filter(tags contain "x:y").count();
        b = from((str->long)Endpoint.tag["a"]).longAvg();
        c = from(ServiceRelation.*).filter(endpoint == "/a").count();
    """
    assert wanted_by(plan_of([Text("own.oal", text)])) == Wanted(("a", "z"), True, True)
    value = attribute(Wanted(("z",)))
    for unwanted in (Field("tag", Type.MAP, "a"), Field("tags", Type.LIST)):
        with pytest.raises(KeyError, match="was not wanted"):
            value("Service", unwanted)

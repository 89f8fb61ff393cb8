"""Logs and events through Spark: what they are found by, and who is heard of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import json_format

from oap.pipeline.bench import NOON, SETTINGS, SHOP, Bench
from skyfarer.oap.core import ids
from skyfarer.oap.core.events import EventCondition, StoredEvent
from skyfarer.oap.core.logs import LogCondition
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.pipeline.analysis.settings import KeptSettings
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import KeyStringValuePair, event, log, otlp_logs, otlp_trace
from skyfarer.wire.rpc import Kind

KEPT = KeptSettings(searchable_tags=("level", "db.type"), searchable_log_tags=("level", "code"))
ALWAYS = (197001010000, 203001010000)
ALWAYS_S = (19700101000000, 20300101000000)
BYTES_MAX = 1_000_000


@pytest.fixture
def bench(tmp_path, spark):
    bench = Bench(tmp_path, spark, replace(SETTINGS, kept=KEPT))
    bench.start(tmp_path / "skyfarer.duckdb")
    yield bench
    bench.stop()


def line(service: str = "shop", instance: str = "shop-1", text: str = "ok", **more) -> log.LogData:
    tags = [KeyStringValuePair(key=k, value=v) for k, v in more.pop("tags", {}).items()]
    told = {"timestamp": NOON, **more}
    return log.LogData(
        service=service,
        serviceInstance=instance,
        body=log.LogDataBody(text=log.TextLog(text=text)),
        tags=log.LogTags(data=tags) if tags else None,
        **told,
    )


def found(bench: Bench, **asked) -> list[str]:
    logs = bench.storage.logs(LogCondition(**asked), False, 0, 100, BYTES_MAX)
    return [log.LogData.FromString(one.data).body.text.text for one in logs]


def test_a_log_is_found_by_whom_it_is_of_by_its_trace_and_by_searchable_tags(bench: Bench) -> None:
    context = log.TraceContext(traceId="t", traceSegmentId="s", spanId=2)
    bench.keep(
        Kind.LOG,
        line(text="plain"),
        line(text="traced", endpoint="/pay", traceContext=context, tags={"level": "ERROR"}),
        line(text="tagged", tags={"code": "500", "db.type": "sql", "level": "ERROR"}),
        line(service="bank", instance="", text="other"),
    )
    bench.apply()
    shop_1 = ids.instance_id(SHOP, "shop-1")
    assert found(bench, service_id=SHOP, instance_id=shop_1) == ["plain", "traced", "tagged"]
    assert found(bench, endpoint_id=ids.endpoint_id(SHOP, "/pay")) == ["traced"]
    assert found(bench, trace_id="t", segment_id="s", span_id=2) == ["traced"]
    assert found(bench, tags=("level=ERROR",)) == ["traced", "tagged"]
    assert found(bench, tags=("level=ERROR", "code=500")) == ["tagged"]
    assert found(bench, tags=("db.type=sql",)) == []
    assert bench.storage.log_tag_keys(ALWAYS_S, 9) == ["code", "level"]
    assert bench.storage.tag_keys(ALWAYS_S, 9) == []
    assert bench.progress() == Applied(4, 4, {})


SAMPLE = """{
    "timestamp": 1618161813371,
    "service": "Your_ApplicationName",
    "serviceInstance": "3a5b8da5a5ba40c0b192e91b5c80f1a8@192.168.1.8",
    "layer": "GENERAL",
    "traceContext": {
        "traceId": "ddd92f52207c468e9cd03ddd107cd530.69.16181331190470001",
        "spanId": "0",
        "traceSegmentId": "ddd92f52207c468e9cd03ddd107cd530.69.16181331190470000"
    },
    "tags": {"data": [{"key": "level", "value": "INFO"},
                      {"key": "logger", "value": "com.example.MyLogger"}]},
    "body": {"text": {"text": "log message"}}
}"""
"""The community's example of a log: over HTTP in an array, over Kafka alone."""


def test_the_sample_of_the_protocol_of_logs_is_found_by_all_that_it_says(bench: Bench) -> None:
    one = json_format.Parse(SAMPLE, log.LogData())
    told, trace = one.timestamp, one.traceContext.traceId
    one.timestamp = NOON
    bench.keep(Kind.LOG, one)
    bench.apply()
    service = ids.service_id("Your_Appli")
    (stored,) = bench.storage.logs(LogCondition(service_id=service), False, 0, 9, BYTES_MAX)
    assert told == 1_618_161_813_371
    assert (stored.timestamp, stored.data) == (NOON, one.SerializeToString())
    assert stored.instance_id == ids.instance_id(service, "3a5b8da5a5")
    segment_id = one.traceContext.traceSegmentId
    assert found(bench, trace_id=trace, segment_id=segment_id, span_id=0) == ["log message"]
    assert found(bench, tags=("level=INFO",)) == ["log message"]
    assert found(bench, tags=("logger=com.example.MyLogger",)) == []


def test_whoever_writes_logs_is_known(bench: Bench) -> None:
    bench.keep(
        Kind.LOG,
        line(endpoint="/pay"),
        line(service="mesh", instance="m-1", layer="MESH"),
        line(service="odd", instance="", layer="NOBODY_KNOWS"),
    )
    bench.apply()
    services = {one.name: one.layers for one in bench.storage.services(None)}
    assert services == {"mesh": ("MESH",), "odd": ("GENERAL",), "shop": ("GENERAL",)}
    assert [one.name for one in bench.storage.instances(SHOP, *ALWAYS)] == ["shop-1"]
    assert bench.storage.instances(ids.service_id("odd"), *ALWAYS) == []
    assert [one.name for one in bench.storage.endpoints(SHOP, "", 9)] == ["/pay"]


def test_names_are_cut_as_those_of_segments_are(bench: Bench) -> None:
    bench.keep(Kind.LOG, line(service="s" * 11, instance="i" * 11, endpoint="e" * 13))
    bench.apply()
    service = ids.service_id("s" * 10)
    (only,) = bench.storage.logs(LogCondition(service_id=service), False, 0, 9, BYTES_MAX)
    assert only.instance_id == ids.instance_id(service, "i" * 10)
    assert only.endpoint_id == ids.endpoint_id(service, "e" * 12)


def test_a_log_without_a_time_has_come_now_and_one_out_of_its_time_is_not_stored(
    bench: Bench,
) -> None:
    now = bench.clock.now_ms()
    bench.keep(
        Kind.LOG,
        line(text="timeless", timestamp=0),
        line(text="ahead", timestamp=now + 3_600_000),
        line(text="late", timestamp=now - 30 * 86_400_000),
        line(text="strange", timestamp=-1),
        line(service="", text="nobody's"),
    )
    bench.writer.append(Kind.LOG, [b"\xff no log"])
    bench.apply()
    (only,) = bench.storage.logs(LogCondition(), False, 0, 9, BYTES_MAX)
    assert only.timestamp == now
    assert [(at, code) for at, code, _ in bench.parked()] == [
        *((1, "future"), (3, "implausible"), (4, "incomplete"), (5, "undecodable")),
    ]
    assert bench.progress().dropped["expired"] == 1


def test_logs_and_segments_in_one_batch_are_kept_apart(bench: Bench) -> None:
    bench.append(segment("shop", "shop-1", "/pay", NOON, 10, segment_id="a"))
    bench.keep(Kind.LOG, line(text="one"), line(text="two", tags={"level": "INFO"}))
    bench.append(segment("shop", "shop-1", "/pay", NOON, 10, segment_id="b"))
    for _ in range(2):
        bench.apply(start=0)
    assert found(bench) == ["one", "two"]
    assert [row[0] for row in bench.stored()] == ["a", "b"]
    assert bench.progress() == Applied(4, 4, {})


def test_half_a_character_in_a_tag_costs_that_character(bench: Bench) -> None:
    whole = line(text="cut", tags={"level": "WARNX"}).SerializeToString()
    bench.writer.append(Kind.LOG, [whole.replace(b"WARNX", b"WARN\xc3")])
    bench.apply()
    assert bench.storage.log_tag_values("level", ALWAYS_S, 9) == ["WARN\ufffd"]


def exported(*records: otlp_logs.LogRecord) -> otlp_logs.ExportLogsServiceRequest:
    def attribute(key: str, value: str) -> otlp_trace.KeyValue:
        return otlp_trace.KeyValue(key=key, value=otlp_trace.AnyValue(string_value=value))

    names = [attribute("service.name", "otel"), attribute("service.instance.id", "otel-1")]
    of_scope = otlp_logs.ScopeLogs(log_records=records)
    of_resource = otlp_logs.ResourceLogs(
        resource=otlp_trace.Resource(attributes=names), scope_logs=[of_scope]
    )
    return otlp_logs.ExportLogsServiceRequest(resource_logs=[of_resource])


def record(text: str, **more: Any) -> otlp_logs.LogRecord:
    code = otlp_trace.KeyValue(key="code", value=otlp_trace.AnyValue(int_value=404))
    body = otlp_trace.AnyValue(string_value=text)
    told = {"time_unix_nano": NOON * 1_000_000, **more}
    return otlp_logs.LogRecord(body=body, attributes=[code], **told)


def otlp_found(bench: Bench, **asked: Any) -> list[str]:
    logs = bench.storage.logs(LogCondition(**asked), False, 0, 100, BYTES_MAX)
    parts = [otlp_logs.ResourceLogs.FromString(one.data or b"") for one in logs]
    return [part.scope_logs[0].log_records[0].body.string_value for part in parts]


def test_logs_of_opentelemetry_are_found_one_by_one(bench: Bench) -> None:
    ids_of_span = {"trace_id": bytes([1] * 16), "span_id": bytes([2] * 8)}
    observed = {"time_unix_nano": 0, "observed_time_unix_nano": (NOON + 1) * 1_000_000}
    bench.keep(
        Kind.OTLP_LOGS,
        exported(
            record("written", severity_text="Warn", severity_number=13, **ids_of_span),
            record("numbered", severity_number=17, **observed),
        ),
        exported(),
        exported(record("plain", severity_number=99)),
    )
    bench.apply()
    otel = ids.service_id("otel")
    instance = ids.instance_id(otel, "otel-1")
    assert otlp_found(bench, service_id=otel, instance_id=instance) == [
        *("written", "plain", "numbered")
    ]
    trace, segment = "01" * 16, "01" * 16 + "." + "02" * 8
    assert otlp_found(bench, trace_id=trace, segment_id=segment, span_id=0) == ["written"]
    assert otlp_found(bench, tags=("level=Warn", "code=404")) == ["written"]
    assert otlp_found(bench, tags=("level=ERROR",)) == ["numbered"]
    assert [one.name for one in bench.storage.instances(otel, *ALWAYS)] == ["otel-1"]
    assert bench.progress() == Applied(3, 3, {})


def test_an_export_with_a_log_that_cannot_be_kept_is_parked_whole(bench: Bench) -> None:
    ahead = record("ahead", time_unix_nano=(NOON + 86_400_000) * 1_000_000)
    bench.keep(Kind.OTLP_LOGS, exported(record("good"), ahead), exported(record("other")))
    bench.writer.append(Kind.OTLP_LOGS, [b"\xff no export"])
    bench.apply()
    assert otlp_found(bench) == ["other"]
    assert [(at, code) for at, code, _ in bench.parked()] == [(0, "future"), (2, "undecodable")]
    assert bench.progress() == Applied(3, 1, {"future": 1, "undecodable": 1})


def happened(uuid: str, **more) -> event.Event:
    source = event.Source(service="shop", serviceInstance="shop-1", endpoint="")
    return event.Event(uuid=uuid, source=source, name="Restart", layer="GENERAL", **more)


def test_an_event_that_begins_and_ends_is_one(bench: Bench) -> None:
    begun = happened("u", type=event.Error, startTime=NOON, parameters={"reason": "oom"})
    bench.keep(Kind.EVENT, begun, happened("v", startTime=NOON + 5, message="again"))
    bench.apply()
    bench.keep(Kind.EVENT, happened("u", type=event.Error, startTime=NOON, endTime=NOON + 9))
    bench.apply()
    first, second = bench.storage.events(EventCondition(service="shop"), False, 0, 9)
    assert first == StoredEvent(
        *("u", "shop", "shop-1", "", "Restart", 1, "", (("reason", "oom"),)),
        *(NOON, NOON + 9, "GENERAL"),
    )
    assert (second.uuid, second.message, second.parameters) == ("v", "again", ())
    assert bench.progress() == Applied(3, 3, {})


def test_an_event_without_a_source_or_time_is_stored_and_one_without_an_id_parked(
    bench: Bench,
) -> None:
    bench.keep(Kind.EVENT, event.Event(uuid="u"), event.Event(name="nobody's"))
    bench.keep(Kind.EVENT, happened("far", startTime=NOON + 86_400_000))
    twice = happened("w", startTime=NOON, parameters={"a": "1"}).SerializeToString()
    bench.writer.append(
        Kind.EVENT, [twice + happened("w", parameters={"a": "2"}).SerializeToString()]
    )
    bench.apply()
    by_id = {one.uuid: one for one in bench.storage.events(EventCondition(), True, 0, 9)}
    assert by_id.keys() == {"u", "w"}
    assert (by_id["u"].service, by_id["u"].layer) == ("", "UNDEFINED")
    assert by_id["w"].parameters == (("a", "2"),)
    assert [(at, code) for at, code, _ in bench.parked()] == [(1, "incomplete"), (2, "future")]

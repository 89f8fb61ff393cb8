from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from skyfarer.base.units import KIB
from skyfarer.wire import messages
from skyfarer.wire.http.desk import GIVE_WAY_BYTES
from skyfarer.wire.http.proto_json import MESSAGES_MAX, VALUES_MAX
from skyfarer.wire.rpc import Kind
from wire.http.rig import Rig, run

SEGMENT = {
    "traceId": "t1",
    "traceSegmentId": "s1",
    "service": "shop",
    "serviceInstance": "one",
    "spans": [
        {
            "spanId": 0,
            "parentSpanId": -1,
            "startTime": "1700000000000",
            "endTime": 1700000000100,
            "spanType": "Entry",
            "spanLayer": "Http",
            "operationName": "/pay",
            "tags": [{"key": "http.method", "value": "GET"}],
            "isError": False,
        }
    ],
}
LOG = {"service": "shop", "timestamp": 5, "layer": "", "body": {"json": {"json": '{"a":1}'}}}
EVENT = {"uuid": "u", "layer": "GENERAL", "type": "Error", "parameters": {"a": "b"}}
ERROR = {"uniqueId": "u", "service": "web", "category": "ajax", "message": "oh", "line": 3}

browser = messages.browser


@pytest.mark.parametrize(
    ("path", "body", "kind", "expected"),
    [
        (
            "/v3/management/keepAlive",
            {"service": "shop", "serviceInstance": "one", "layer": "MESH"},
            Kind.INSTANCE_PING,
            [messages.InstancePingPkg(service="shop", serviceInstance="one", layer="MESH")],
        ),
        (
            "/v3/management/reportProperties",
            {"service": "shop", "properties": [{"key": "language", "value": "lua"}]},
            Kind.INSTANCE_PROPERTIES,
            [
                messages.InstanceProperties(
                    service="shop",
                    properties=[messages.KeyStringValuePair(key="language", value="lua")],
                )
            ],
        ),
        (
            "/v3/events",
            [EVENT],
            Kind.EVENT,
            [
                messages.event.Event(
                    uuid="u", layer="GENERAL", type=messages.event.Error, parameters={"a": "b"}
                )
            ],
        ),
        (
            "/browser/perfData",
            {"service": "web", "pagePath": "/", "loadPageTime": 9},
            Kind.BROWSER_PAGE,
            [browser.BrowserPerfData(service="web", pagePath="/", loadPageTime=9)],
        ),
        (
            "/browser/perfData/webVitals",
            {"service": "web", "cls": 0.5, "lcpTime": 7},
            Kind.BROWSER_WEB_VITALS,
            [browser.BrowserWebVitalsPerfData(service="web", cls=0.5, lcpTime=7)],
        ),
        (
            "/browser/perfData/resources",
            [{"service": "web", "name": "vue.js", "size": 8}],
            Kind.BROWSER_RESOURCE,
            [browser.BrowserResourcePerfData(service="web", name="vue.js", size=8)],
        ),
        (
            "/browser/perfData/webInteractions",
            [{"service": "web", "inpTime": 4}],
            Kind.BROWSER_INTERACTION,
            [browser.BrowserWebInteractionsPerfData(service="web", inpTime=4)],
        ),
        (
            "/browser/errorLog",
            ERROR,
            Kind.BROWSER_ERROR,
            [browser.BrowserErrorLog(uniqueId="u", service="web", message="oh", line=3)],
        ),
        (
            "/browser/errorLogs",
            [ERROR, ERROR],
            Kind.BROWSER_ERROR,
            [browser.BrowserErrorLog(uniqueId="u", service="web", message="oh", line=3)] * 2,
        ),
    ],
)
def test_json_becomes_the_record_that_grpc_would_have_brought(
    path: str, body: Any, kind: Kind, expected: list[Any]
) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, json.dumps(body))

        assert (answer.status, answer.text) == (200, "{}\n")
        assert answer.headers["content-type"] == "application/json"
        kinds, payloads = zip(*rig.kept, strict=True)
        assert set(kinds) == {kind}
        assert [type(expected[0]).FromString(one) for one in payloads] == expected

    run(Rig(), talk)


def test_segments_come_alone_or_as_an_array() -> None:
    async def talk(rig: Rig) -> None:
        assert (await rig.post("/v3/segment", json.dumps(SEGMENT))).status == 200
        assert (await rig.post("/v3/segments", json.dumps([SEGMENT, SEGMENT]))).status == 200

        assert [kind for kind, _ in rig.kept] == [Kind.SEGMENT] * 3
        assert len({payload for _, payload in rig.kept}) == 1
        segment = messages.SegmentObject.FromString(rig.kept[0][1])
        span = segment.spans[0]
        assert (span.startTime, span.endTime) == (1700000000000, 1700000000100)
        assert span.spanType == messages.SpanType.Entry
        assert span.spanLayer == messages.SpanLayer.Http
        assert span.tags[0].value == "GET"

    run(Rig(), talk)


def test_a_long_array_of_logs_stays_in_order_while_others_are_served() -> None:
    async def talk(rig: Rig) -> None:
        text = "x" * (GIVE_WAY_BYTES // 4)
        logs = [{"service": str(n), "body": {"text": {"text": text}}} for n in range(40)]

        assert (await rig.post("/v3/logs", " \n" + json.dumps(logs, indent=1) + "\n")).status == 200

        services = [messages.log.LogData.FromString(one).service for _, one in rig.kept]
        assert services == [str(n) for n in range(40)]

    run(Rig(), talk)


def test_an_empty_array_is_taken_and_keeps_nothing() -> None:
    async def talk(rig: Rig) -> None:
        assert (await rig.post("/v3/logs", "[ ]")).status == 200
        assert not rig.kept

    run(Rig(), talk)


def test_a_name_of_an_enum_that_only_newer_agents_know_is_left_out() -> None:
    async def talk(rig: Rig) -> None:
        body = '{"traceId": "t", "spans": [{"spanId": 3, "spanType": "Sideways"}]}'

        assert (await rig.post("/v3/segment", body)).status == 200
        assert messages.SegmentObject.FromString(rig.kept[0][1]).spans[0].spanId == 3

    run(Rig(), talk)


def test_fields_that_only_newer_agents_know_are_left_out() -> None:
    async def talk(rig: Rig) -> None:
        body = {**LOG, "mood": "fine", "body": {**LOG["body"], "shape": [1]}}  # type: ignore[dict-item]

        assert (await rig.post("/v3/logs", json.dumps([body]))).status == 200
        read = messages.log.LogData.FromString(rig.kept[0][1])
        assert (read.service, read.body.json.json) == ("shop", '{"a":1}')

    run(Rig(), talk)


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/v3/segments", "", "must be a JSON array"),
        ("/v3/segments", "{}", "must be a JSON array"),
        ("/v3/segment", "", "is no JSON: Expecting value"),
        ("/v3/segment", "[]", "SegmentObject must be a JSON object"),
        ("/v3/segment", "{} {}", "something follows its end"),
        ("/v3/segment", '{"traceId": ', "is no JSON"),
        ("/v3/segment", '{"colour": "red"}', "has none of the fields that a SegmentObject has"),
        ("/v3/segment", "[" * 100_000, "is no JSON"),
        ("/v3/segment", '{"a":' * 100_000, "is no JSON"),
        ("/v3/segment", "1" * 10_000, "is no JSON"),
        ("/v3/segment", '{"spans": "none"}', "SegmentObject.spans must be a JSON object"),
        ("/v3/segment", '{"spans": {"spanId": 1}}', "repeated field spans"),
        ("/v3/segment", '{"spans": [{"spanId": "one"}]}', "cannot be read"),
        ("/v3/segment", '{"traceId": "\\ud800"}', "cannot be read"),
        ("/v3/segment", '{"traceId": 5}', "cannot be read"),
        ("/v3/logs", '[{"service": "a"}, "b"]', "LogData 1 must be a JSON object"),
        ("/v3/logs", '[{"service": "a"} {"service": "b"}]', "a comma or the end"),
        ("/v3/logs", '[{"service": "a"},]', "is no JSON"),
        ("/v3/logs", '[{"service": "a"}', "a comma or the end"),
        ("/v3/logs", '[{"service": "a"}]]', "something follows its end"),
        ("/v3/logs", '[{"service": "a", "body": "text"}]', "LogData 0.body must be a JSON object"),
        ("/v3/events", '[{"uuid": "u", "parameters": ["a"]}]', "must be a JSON object"),
        ("/v3/events", b'[{"uuid": "\xff"}]', "is no UTF-8"),
    ],
)
def test_what_is_no_such_message_is_refused_in_a_sentence(
    path: str, body: str | bytes, says: str
) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, body)

        assert answer.status == 400
        assert says in answer.text
        assert len(answer.body) <= 1 * KIB
        assert not rig.kept

    run(Rig(), talk)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v3/segment", '{"a":[' + "{}," * VALUES_MAX + "{}]}"),
        ("/v3/segment", '{"a":[' + "[]," * VALUES_MAX + "[]]}"),
        ("/v3/segment", '{"a":[' + "1," * VALUES_MAX + "1]}"),
        ("/v3/segment", '{"spans":[' + "{}," * MESSAGES_MAX + "{}]}"),
        ("/v3/segments", '[{"traceId":"t","spans":[' + "{}," * MESSAGES_MAX + "{}]}]"),
    ],
)
def test_few_bytes_that_would_be_much_work_are_refused(path: str, body: str) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, body)

        assert answer.status == 413
        assert not rig.kept

    run(Rig(), talk)


def test_what_stands_in_a_text_does_not_count_as_values() -> None:
    async def talk(rig: Rig) -> None:
        inside = json.dumps([{"a,b": "{["}]) * 50_000
        text = json.dumps([{"service": "a", "body": {"json": {"json": inside}}}])

        assert (await rig.post("/v3/logs", text)).status == 200
        assert messages.log.LogData.FromString(rig.kept[0][1]).body.json.json == inside

    run(Rig(), talk)


@pytest.mark.parametrize("text", ['"' + '\\"' * 500_000, '"\\' * 500_000, '"' * 1_000_001])
def test_no_text_makes_counting_its_values_slow(text: str) -> None:
    """The test's own time limit would end it: the wrong pattern takes hours."""

    async def talk(rig: Rig) -> None:
        assert (await rig.post("/v3/segment", text)).status == 400

    run(Rig(), talk)


def test_protobuf_is_not_imported_before_the_first_json_comes() -> None:
    script = """
import sys
from wire.http.rig import Rig, run

async def talk(rig):
    assert (await rig.post("/logging", b"\\n\\x01x")).status == 200
    assert "google.protobuf" not in sys.modules
    assert (await rig.post("/v3/logs", '[{"service": "a"}]')).status == 200
    assert "google.protobuf" in sys.modules

run(Rig(), talk)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr


def test_without_protobuf_json_is_answered_501_and_the_rest_is_served() -> None:
    script = """
import sys
sys.modules["google.protobuf"] = None
from wire.http.rig import Rig, run

async def talk(rig):
    answer = await rig.post("/v3/logs", '[{"service": "a"}]')
    assert answer.status == 501, answer
    assert "skyfarer[filters]" in answer.text
    assert (await rig.post("/logging", b"\\n\\x01x")).status == 200

run(Rig(), talk)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr

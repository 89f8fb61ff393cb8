from __future__ import annotations

import json
import subprocess
import sys

import pytest

from skyfarer.base.units import KIB
from skyfarer.wire import messages
from skyfarer.wire.http.desk import GIVE_WAY_BYTES
from skyfarer.wire.http.endpoints import ENDPOINTS
from skyfarer.wire.http.proto_json import MESSAGES_MAX, VALUES_MAX
from skyfarer.wire.rpc import Kind
from wire.http.posts import LOG, POSTS, Post
from wire.http.rig import Rig, run


@pytest.mark.parametrize(
    "post", [one for one in POSTS if not isinstance(one.value, bytes)], ids=lambda one: one.path
)
def test_json_becomes_the_record_that_grpc_would_have_brought(post: Post) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(post.path, post.body)

        assert (answer.status, answer.text) == (200, "{}\n")
        assert answer.headers["content-type"] == "application/json"
        assert post.is_kept_as(rig.kept)

    run(Rig(), talk)


def test_there_is_something_to_post_to_every_endpoint() -> None:
    kept = {one.path for one in ENDPOINTS.values() if one.kind is not Kind.NONE}
    assert {post.path for post in POSTS} == kept


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
        ("/v3/segment", '{"spans": [{"spanLayer": Infinity}]}', "cannot be read"),
        ("/v3/segment", '{"spans": [{"spanLayer": "\\ud800"}]}', "cannot be read"),
        ("/browser/perfData/webVitals", '{"cls": 1' + "0" * 400 + "}", "cannot be read"),
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

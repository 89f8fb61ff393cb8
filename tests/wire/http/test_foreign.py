"""Bodies of Telegraf, Zipkin and Firehose: what is kept of them, and what clients are told."""

from __future__ import annotations

import json

import pytest

from skyfarer.wire.rpc import Kind
from wire.http.posts import JSON, POSTS, THRIFT, THRIFT_TYPE, Post
from wire.http.rig import PROTOBUF, Rig, run

OURS = ("/telegraf", "/api/", "/aws/")
FOREIGN = [post for post in POSTS if post.path.startswith(OURS)]
DELIVERY = "/aws/firehose/metrics"


@pytest.mark.parametrize("post", FOREIGN, ids=lambda one: one.kind.name)
def test_it_is_kept_as_the_bytes_that_came_and_answered_in_its_own_way(post: Post) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(post.path, post.body, post.headers)
        assert post.is_answered_by(answer.status, answer.headers["content-type"], answer.body)
        assert rig.kept == [(post.kind, post.body)]
        assert rig.metric(f'receiver_messages_total{{rpc="{post.path}"}}') == 1

    run(Rig(), talk)


@pytest.mark.parametrize(
    ("path", "body", "headers", "said"),
    [
        ("/telegraf", b"[]", {}, "must be a JSON object"),
        ("/telegraf", b'{"metrics": 5}', {}, "metrics must be a JSON array of objects"),
        ("/telegraf", b'{"name": "cpu"}', {}, "'name' and 'fields'"),
        ("/api/v2/spans", b'{"id": "1"}', {}, "the body must be a JSON array of objects"),
        ("/api/v2/spans", b"[1]", {}, "the body must be a JSON array of objects"),
        ("/api/v2/spans", b"[", {}, "no JSON"),
        ("/api/v2/spans", b"[]", PROTOBUF, "no protobuf message"),
        ("/api/v1/spans", b"[]", {"Content-Type": THRIFT_TYPE}, "Thrift"),
        ("/api/v1/spans", THRIFT[:4], {"Content-Type": THRIFT_TYPE}, "Thrift"),
        ("/api/v1/spans", THRIFT[:-1], {"Content-Type": THRIFT_TYPE}, "Thrift"),
        ("/api/v1/spans", b"\x0c\x7f\xff\xff\xff\x00", {"Content-Type": THRIFT_TYPE}, "Thrift"),
        (DELIVERY, b"{}", {}, "a requestId"),
        (DELIVERY, b'{"requestId": "r"}', {}, "records must be a JSON array"),
        (DELIVERY, b'{"requestId": "r", "records": [{}]}', {}, "must have data"),
    ],
)
def test_what_no_reader_could_begin_with_is_400_and_not_kept(
    path: str, body: bytes, headers: dict[str, str], said: str
) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, body, headers)
        assert answer.status == 400
        assert said in answer.text
        assert not rig.kept

    run(Rig(), talk)


def test_an_empty_list_of_spans_is_one() -> None:
    async def talk(rig: Rig) -> None:
        for path, body, content_type, kind in (
            ("/api/v2/spans", b"[]", JSON, Kind.ZIPKIN_V2_JSON),
            ("/api/v1/spans", THRIFT[:1] + bytes(4), THRIFT_TYPE, Kind.ZIPKIN_V1_THRIFT),
        ):
            assert (await rig.post(path, body, {"Content-Type": content_type})).status == 202
            assert rig.kept[-1] == (kind, body)

    run(Rig(), talk)


def test_firehose_hears_the_number_of_its_delivery_and_the_time() -> None:
    async def talk(rig: Rig) -> None:
        body = {"requestId": "ed4acda5-034f", "timestamp": 5, "records": []}
        answer = await rig.post(DELIVERY, json.dumps(body))
        told = json.loads(answer.body)
        assert told["requestId"] == "ed4acda5-034f"
        assert told["timestamp"] > 1_700_000_000_000
        refused = json.loads((await rig.post(DELIVERY, b"{}")).body)
        assert refused.keys() == {"errorMessage"}

    run(Rig(), talk)


def test_a_body_of_too_many_values_is_413() -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post("/api/v2/spans", b"[" + b"{}," * 270_000 + b"{}]")
        assert answer.status == 413
        assert not rig.kept

    run(Rig(), talk)

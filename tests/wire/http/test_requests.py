from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import zlib

import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.wire import messages
from skyfarer.wire.rpc import Kind
from wire.http.rig import HOST, PROTOBUF, Rig, reply, run

LOG = messages.log.LogData(service="shop", timestamp=1).SerializeToString()
SPANS = b"\n\x02\n\x00"  # an export request with one empty ResourceSpans
ENDLESS = bytes.fromhex("0a" + "ff" * 9 + "01")
NESTED = bytes.fromhex("0a 0b" + "0a" + "ff" * 9 + "01")
PING = json.dumps({"service": "shop", "serviceInstance": "one"})


def full() -> None:
    raise RetryableError("the queue is full")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/traces", Kind.OTLP_TRACES),
        ("/v1/metrics", Kind.OTLP_METRICS),
        ("/v1/logs", Kind.OTLP_LOGS),
    ],
)
def test_an_export_of_opentelemetry_is_kept_as_the_bytes_that_came(path: str, kind: Kind) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, SPANS, PROTOBUF)

        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["content-type"] == "application/x-protobuf"
        assert rig.kept == [(kind, SPANS)]

    run(Rig(), talk)


def test_json_of_opentelemetry_is_told_what_to_set_in_the_form_it_asked_in() -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post("/v1/traces", "{}", {"Content-Type": "application/json"})

        assert answer.status == 415
        assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in json.loads(answer.text)["message"]
        assert not rig.kept

    run(Rig(), talk)


def test_a_refused_export_carries_the_reason_as_protobuf() -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post("/v1/logs", b"this is no protobuf", PROTOBUF)

        assert answer.status == 400
        assert answer.headers["content-type"] == "application/x-protobuf"
        assert answer.body == b"\x12\x1f" + b"the body is no protobuf message"

    run(Rig(), talk)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/traces", Kind.OTLP_TRACES),
        ("/v1/metrics", Kind.OTLP_METRICS),
        ("/v1/logs", Kind.OTLP_LOGS),
        ("/logging", Kind.LOG),
        ("/api/v2/spans", Kind.ZIPKIN_V2_PROTO),
    ],
)
def test_of_posted_protobuf_the_top_level_is_judged_and_nothing_inside(
    path: str, kind: Kind
) -> None:
    async def talk(rig: Rig) -> None:
        assert (await rig.post(path, ENDLESS, PROTOBUF)).status == 400
        assert (await rig.post(path, NESTED, PROTOBUF)).status in (200, 202)
        assert rig.kept == [(kind, NESTED)]

    run(Rig(), talk)


def test_logging_takes_protobuf_and_answers_status_and_msg() -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post("/logging", LOG)
        wrong = await rig.post("/logging", '[{"service": "shop"}]')

        assert (answer.status, json.loads(answer.text)) == (
            200,
            {"status": "success", "msg": "success"},
        )
        assert wrong.status == 400
        assert json.loads(wrong.text)["status"] == "failing"
        assert "/v3/logs" in json.loads(wrong.text)["msg"]
        assert rig.kept == [(Kind.LOG, LOG)]

    run(Rig(), talk)


@pytest.mark.parametrize("path", ["/v1/traces", "/logging", "/v3/management/keepAlive"])
def test_a_full_queue_is_answered_503_with_a_time_to_come_back(path: str) -> None:
    async def talk(rig: Rig) -> None:
        body: bytes | str = PING if path.startswith("/v3") else LOG
        answer = await rig.post(path, body, PROTOBUF)

        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert b"the queue is full" in answer.body
        assert not rig.kept

    run(Rig(full), talk)


def test_what_the_queue_will_never_take_is_answered_400() -> None:
    def never() -> None:
        raise PermanentError("a record of 9 bytes is too large")

    async def talk(rig: Rig) -> None:
        answer = await rig.post("/v3/management/keepAlive", PING)

        assert (answer.status, answer.text) == (400, "a record of 9 bytes is too large\n")

    run(Rig(never), talk)


def test_a_defect_behind_the_door_is_answered_500_and_serving_goes_on() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    async def talk(rig: Rig) -> None:
        assert (await rig.post("/logging", LOG)).status == 500
        rig.judge = lambda: None
        assert (await rig.post("/logging", LOG)).status == 200

    run(Rig(broken), talk)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 404),
        ("POST", "/v3/segments/", 404),
        ("POST", "/v3/meters", 404),
        ("GET", "/v3/unknown", 404),
        ("GET", "/v3/segments", 405),
        ("HEAD", "/v3/segments", 405),
        ("PUT", "/v1/traces", 405),
        ("DELETE", "/logging", 405),
        ("OPTIONS", "/browser/perfData", 405),
        ("POST", "/logging?from=here", 200),
    ],
)
def test_every_request_gets_its_status(method: str, path: str, status: int) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, LOG, method=method)

        assert answer.status == status
        assert answer.headers.get("allow") == ("POST" if status == 405 else None)

    run(Rig(), talk)


def test_a_path_without_a_door_is_404_and_says_what_is_served() -> None:
    async def talk(rig: Rig) -> None:
        rig.server.serve({"/logging": rig.append})

        assert (await rig.post("/v3/logs", "[]")).text == (
            "/v3/logs is not served here; what is: /logging\n"
        )

    run(Rig(), talk)


def test_doors_change_while_a_connection_stays() -> None:
    async def talk(rig: Rig) -> None:
        client = http.client.HTTPConnection(HOST, rig.port, timeout=10)

        def ask() -> int:
            client.request("POST", "/logging", LOG)
            return reply(client).status

        assert await asyncio.to_thread(ask) == 200
        socket = client.sock
        others: list[bytes] = []
        rig.server.serve({"/logging": lambda kind, payloads: others.extend(payloads)})
        assert await asyncio.to_thread(ask) == 200
        assert client.sock is socket
        assert (len(rig.kept), others) == (1, [LOG])
        client.close()

    run(Rig(), talk)


def test_a_door_for_no_endpoint_is_a_mistake_of_the_caller() -> None:
    rig = Rig()

    with pytest.raises(ValueError, match="/v3/meters"):
        rig.server.serve({"/v3/meters": rig.append})


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(LOG)),
        ("GZIP", gzip.compress(LOG)),
        ("deflate", zlib.compress(LOG)),
        ("identity", LOG),
    ],
)
def test_a_compressed_body_is_kept_inflated(encoding: str, body: bytes) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post("/logging", body, {"Content-Encoding": encoding})

        assert answer.status == 200
        assert rig.kept == [(Kind.LOG, LOG)]

    run(Rig(), talk)


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", LOG, 400),
        ("gzip", gzip.compress(LOG)[:-4], 400),
        ("gzip", gzip.compress(LOG) + b"more", 400),
        ("br", LOG, 415),
        ("gzip, gzip", gzip.compress(gzip.compress(LOG)), 415),
    ],
)
def test_what_cannot_be_inflated_is_refused(encoding: str, body: bytes, status: int) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post("/logging", body, {"Content-Encoding": encoding})

        assert answer.status == status
        assert not rig.kept

    run(Rig(), talk)


def test_requests_sent_at_once_on_one_connection_are_answered_in_order() -> None:
    async def talk(rig: Rig) -> None:
        def request(name: str, more: str = "") -> bytes:
            body = messages.log.LogData(service=name).SerializeToString()
            head = f"POST /logging HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{more}\r\n"
            return head.encode() + body

        heard = await rig.say(request("a") + request("b") + request("c", "Connection: close\r\n"))

        assert heard.count(b"HTTP/1.1 200") == 3
        services = [messages.log.LogData.FromString(one).service for _, one in rig.kept]
        assert services == ["a", "b", "c"]

    run(Rig(), talk)


def test_a_chunked_body_is_taken_whole() -> None:
    async def talk(rig: Rig) -> None:
        head = b"POST /logging HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in LOG)

        heard = await rig.say(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")

        assert heard.startswith(b"HTTP/1.1 200")
        assert rig.kept == [(Kind.LOG, LOG)]

    run(Rig(), talk)


def test_a_client_that_waits_to_be_told_is_told_to_go_on() -> None:
    async def talk(rig: Rig) -> None:
        reader, writer = await rig.open()
        writer.write(
            b"POST /logging HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
            b"Content-Length: %d\r\n\r\n" % len(LOG)
        )
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(LOG)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()

    run(Rig(), talk)


def test_requests_messages_and_bytes_are_counted_by_path() -> None:
    async def talk(rig: Rig) -> None:
        await rig.post("/logging", LOG)
        await rig.post("/v3/logs", '[{"service": "a"}, {"service": "b"}]')
        await rig.post("/v3/logs", "nonsense")
        await rig.post("/whatever/anybody/asks")

        assert rig.metric('receiver_calls_total{rpc="/logging",status="200"}') == 1
        assert rig.metric('receiver_calls_total{rpc="/v3/logs",status="400"}') == 1
        assert rig.metric('receiver_calls_total{rpc="unknown",status="404"}') == 1
        assert rig.metric('receiver_messages_total{rpc="/v3/logs"}') == 2
        assert rig.metric("receiver_bytes_total") == len(LOG) + 36 + 8
        await rig.until(lambda: rig.metric("receiver_connections ") == 0)

    run(Rig(), talk)

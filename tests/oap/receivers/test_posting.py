"""What agents post, in the ingest queue: at the receiver's own port and by way of core's."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import httpx
import psutil
import pytest

from oap.receivers.posting import (
    BODY_BYTES_MAX,
    HOST,
    TIMEOUT_S,
    WAYS,
    Receiving,
    query_server,
    receiving,
)
from skyfarer.base.units import MIB
from skyfarer.oap.receivers import inner
from skyfarer.oap.receivers.access import AccessSettings
from skyfarer.oap.receivers.collecting import COLLECTED, PASSED_ON_MAX
from skyfarer.oap.receivers.front import Front
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually
from skyfarer.wire.rpc import Kind
from wire.http.posts import POSTS, Post

TOKEN = {"Authentication": "open-sesame"}
ENDLESS = bytes.fromhex("0a" + "ff" * 9 + "01")
NESTED = bytes.fromhex("0a 0b" + "0a" + "ff" * 9 + "01")
TAKEN = [post for post in POSTS if post.path in COLLECTED]
BOMB = gzip.compress(bytes(50 * MIB))  # 50 KiB
SEGMENT = next(post for post in POSTS if post.path == "/v3/segment")


def name(post: Post) -> str:
    return f"{post.path}-{post.kind.name}"


@pytest.fixture(scope="module", params=WAYS)
def receiver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Receiving]:
    """Asks for a token, so that every test shows that it is passed on."""
    access = AccessSettings(token=TOKEN["Authentication"])
    with receiving(tmp_path_factory.mktemp("receiver"), request.param, access) as made:
        made.http.headers.update(TOKEN)
        yield made


@pytest.mark.parametrize("post", TAKEN, ids=name)
@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate", "zstd"])
def test_what_is_posted_is_in_the_queue_when_it_is_answered(
    receiver: Receiving, post: Post, encoding: str
) -> None:
    encode = encoder(encoding)
    before = len(receiver.kept())

    answer = receiver.http.post(
        post.path,
        content=encode(post.body),
        headers={**post.headers, "Content-Encoding": encoding},
    )

    assert post.is_answered_by(answer.status_code, answer.headers["content-type"], answer.content)
    assert post.is_kept_as(receiver.kept()[before:])


def encoder(encoding: str) -> Callable[[bytes], bytes]:
    if encoding == "zstd":
        compress: Callable[[bytes], bytes] = pytest.importorskip("backports.zstd").compress
        return compress
    return {"identity": bytes, "gzip": gzip.compress, "deflate": zlib.compress}[encoding]


def test_the_routes_are_the_originals_and_a_satellites_own_is_not_among_them() -> None:
    assert {post.path for post in POSTS} - set(COLLECTED) == {"/logging"}


def test_opentelemetrys_json_is_kept_as_its_protobuf(receiver: Receiving) -> None:
    before = len(receiver.kept())
    answer = receiver.http.post("/v1/logs", json={"resourceLogs": [{"schemaUrl": "x"}]})

    assert (answer.status_code, answer.json()) == (200, {})
    assert receiver.kept()[before:] == [(Kind.OTLP_LOGS, b"\x0a\x03\x1a\x01x")]


def test_firehose_shows_its_token_as_an_access_key(receiver: Receiving) -> None:
    post = next(one for one in POSTS if one.path == "/aws/firehose/metrics")
    before = len(receiver.kept())
    statuses = []
    for key in ("open-barley", TOKEN["Authentication"]):
        answer = httpx.post(
            f"http://{HOST}:{receiver.http_port}{post.path}",
            content=post.body,
            headers={"X-Amz-Firehose-Access-Key": key},
            trust_env=False,
            timeout=TIMEOUT_S,
        )
        statuses.append(answer.status_code)

    assert statuses == [401, 200]
    assert post.is_kept_as(receiver.kept()[before:])


def test_a_body_that_is_broken_in_a_nested_message_is_kept_for_the_analysis(
    receiver: Receiving,
) -> None:
    before = len(receiver.kept())
    answer = receiver.http.post(
        "/v1/traces", content=NESTED, headers={"Content-Type": "application/x-protobuf"}
    )
    assert answer.status_code == 200
    assert receiver.kept()[before:] == [(Kind.OTLP_TRACES, NESTED)]


def test_a_body_without_an_announced_length_is_taken(receiver: Receiving) -> None:
    before = len(receiver.kept())
    pieces = iter([SEGMENT.body[:10], SEGMENT.body[10:]])

    assert receiver.http.post("/v3/segment", content=pieces).status_code == 200
    assert SEGMENT.is_kept_as(receiver.kept()[before:])


@pytest.mark.parametrize(
    ("path", "content", "headers", "status", "said"),
    [
        ("/v3/segment", b"nonsense", {}, 400, "the body is no JSON"),
        ("/v3/segments", b"{}", {}, 400, "must be a JSON array"),
        ("/v1/traces", b"\xff\xff", {"Content-Type": "application/x-protobuf"}, 400, "no protobuf"),
        ("/v1/traces", ENDLESS, {"Content-Type": "application/x-protobuf"}, 400, "no protobuf"),
        ("/v3/segment", SEGMENT.body, {"Content-Encoding": "gzip"}, 400, "cannot be inflated"),
        ("/v3/segment", SEGMENT.body, {"Content-Encoding": "br"}, 415, "is not known here"),
        ("/v3/segment", b" " * (BODY_BYTES_MAX + 1), {}, 413, f"more than {BODY_BYTES_MAX} bytes"),
        ("/v3/segment", b" " * 8 * MIB, {}, 413, f"more than {BODY_BYTES_MAX} bytes"),
        (
            "/v3/segment",
            BOMB,
            {"Content-Encoding": "gzip"},
            413,
            f"inflates to more than {BODY_BYTES_MAX} bytes",
        ),
        ("/v3/segment", SEGMENT.body, {"Authentication": "open-barley"}, 401, "a valid token"),
        ("/v3/segment", b" " * 8 * MIB, {"Authentication": ""}, 401, "a valid token"),
    ],
)
def test_what_is_refused_is_answered_with_the_reason_and_not_kept(
    receiver: Receiving,
    path: str,
    content: bytes,
    headers: dict[str, str],
    status: int,
    said: str,
) -> None:
    before = len(receiver.kept())
    answer = receiver.http.post(path, content=content, headers=headers)

    assert (answer.status_code, said in answer.text) == (status, True)
    assert len(receiver.kept()) == before
    assert receiver.http.post("/v3/segment", content=SEGMENT.body).status_code == 200


@pytest.mark.parametrize("post", TAKEN, ids=name)
def test_on_every_route_what_is_no_message_of_it_is_400(receiver: Receiving, post: Post) -> None:
    before = len(receiver.kept())
    noise = Random(post.path).randbytes(500)
    for body in (b"\xff\xff" + noise, post.body[:-1], b"\x00"):
        answer = receiver.http.post(post.path, content=body, headers=post.headers)
        assert answer.status_code == 400
    short = gzip.compress(post.body)[:-1]
    headers = {**post.headers, "Content-Encoding": "gzip"}
    assert receiver.http.post(post.path, content=short, headers=headers).status_code == 400

    assert len(receiver.kept()) == before


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_does_not_make_the_receiver_larger(receiver: Receiving, encoding: str) -> None:
    bomb = BOMB if encoding == "gzip" else encoder(encoding)(bytes(50 * MIB))
    child = receiver_process()
    headers = {"Content-Encoding": encoding, "Content-Type": "application/x-protobuf"}
    before = child.memory_info().rss
    for _ in range(5):
        assert receiver.http.post("/v1/traces", content=bomb, headers=headers).status_code == 413

    assert child.memory_info().rss - before < 10 * MIB


def receiver_process() -> psutil.Process:
    """The newest: each way has one."""
    found = [
        one
        for one in psutil.Process().children()
        if "skyfarer.oap.receivers.process" in one.cmdline()
    ]
    return max(found, key=lambda one: one.create_time())


def test_other_methods_are_405(receiver: Receiving) -> None:
    for method in ("GET", "PUT", "DELETE"):
        assert receiver.http.request(method, "/v3/segment").status_code == 405


def test_slow_clients_do_not_keep_good_ones_waiting(receiver: Receiving) -> None:
    slow = []
    for _ in range(100):
        client = socket.create_connection((HOST, receiver.http_port), TIMEOUT_S)
        client.sendall(
            b"POST /v3/segment HTTP/1.1\r\nHost: x\r\nAuthentication: open-sesame\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        slow.append(client)

    assert receiver.http.post("/v3/segment", content=SEGMENT.body).status_code == 200
    for client in slow:
        client.close()


def test_a_refusal_does_not_wait_for_the_body(receiver: Receiving) -> None:
    with socket.create_connection((HOST, receiver.http_port), TIMEOUT_S) as client:
        client.sendall(b"POST /v3/segment HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 401")


def test_a_client_that_goes_away_in_the_middle_leaves_nothing(receiver: Receiving) -> None:
    before = len(receiver.kept())
    with socket.create_connection((HOST, receiver.http_port), TIMEOUT_S) as client:
        half = SEGMENT.body[: len(SEGMENT.body) // 2]
        client.sendall(
            b"POST /v3/segment HTTP/1.1\r\nHost: x\r\nAuthentication: open-sesame\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(SEGMENT.body), half)
        )

    assert receiver.http.post("/v3/segment", content=SEGMENT.body).status_code == 200
    assert SEGMENT.is_kept_as(receiver.kept()[before:])


def test_a_killed_receiver_costs_no_more_than_some_answers_of_503(tmp_path: Path) -> None:
    with receiving(tmp_path, "core's port") as receiver:
        statuses = [ask(receiver)]
        receiver_process().kill()
        eventually(
            lambda: statuses.append(ask(receiver)) or statuses[-1] == 200,
            TIMEOUT_S,
            "the next receiver answers",
        )

        assert set(statuses) <= {200, 503}
        assert len(receiver.kept()) >= statuses.count(200)


def ask(receiver: Receiving) -> int:
    return receiver.http.post("/v3/segment", content=SEGMENT.body).status_code


@pytest.mark.parametrize("post", TAKEN, ids=name)
def test_while_nobody_receives_it_is_503_in_the_form_of_the_protocol(
    nobody: httpx.Client, post: Post
) -> None:
    answer = nobody.post(post.path, content=post.body, headers=post.headers)

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert b"the receiver is not there just now" in answer.content
    forms = {"v1": "application/x-protobuf", "v2": "application/json", "aws": "application/json"}
    form = forms.get(post.path.split("/")[1], "text/plain")
    assert answer.headers["content-type"].startswith(form)


def test_a_path_may_be_written_with_escapes(nobody: httpx.Client) -> None:
    assert nobody.post("/v3/%73egment", content=SEGMENT.body).status_code == 503


@pytest.fixture(scope="module")
def nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A main process whose receiver was killed: the socket is there, and nobody listens."""
    path = tmp_path_factory.mktemp("nobody") / "receiver.sock"
    inner.bind(path).close()
    server = query_server(Front(path), Registry(), Health())
    server.start()
    with httpx.Client(
        base_url=f"http://{HOST}:{server.port}", trust_env=False, timeout=TIMEOUT_S
    ) as http:
        yield http
    server.stop(5)


def test_no_more_requests_are_passed_on_at_once_than_the_bound(tmp_path: Path) -> None:
    with receiving(tmp_path, "core's port") as receiver:
        slow = [socket.create_connection((HOST, receiver.http_port)) for _ in range(PASSED_ON_MAX)]
        for client in slow:
            client.sendall(b"POST /v3/segment HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        eventually(lambda: ask(receiver) == 503, TIMEOUT_S, "there are too many")
        for client in slow:
            client.close()
        eventually(lambda: ask(receiver) == 200, TIMEOUT_S, "they are gone")

"""Who shows no valid token is refused, by every call and every path, and leaves nothing behind."""

from __future__ import annotations

import hmac
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.wire import tokens as room
from skyfarer.wire.calls import HEALTH_CHECK
from skyfarer.wire.http.endpoints import ENDPOINTS
from skyfarer.wire.relay import Conversation, Metadata
from skyfarer.wire.rpc import BY_PATH, RPCS, Handling, Kind, Rpc
from skyfarer.wire.tokens import FILE_BYTES_MAX, LOG_INTERVAL_S, TOKENS_MAX, Tokens
from wire.http.posts import POSTS, Post
from wire.http.rig import Rig, run

TOKEN, OTHER = "open-sesame", "open-barley"
SHOWN: dict[str, str | None] = {
    "nothing": None,
    "an empty one": "",
    "a wrong one": "open-rye",
    "one that begins like it": TOKEN[:-1],
    "one that begins with it": TOKEN + "s",
    "one in other letters": TOKEN.upper(),
    "two in one": f"{TOKEN},{OTHER}",
    "the whole file": f"{TOKEN} {OTHER}",
}
TIMEOUT_S = 120.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "tokens", TOKEN, OTHER)


def write(file: Path, *lines: str) -> Path:
    """As an operator should: never a half of it."""
    fresh = file.with_suffix(".new")
    fresh.write_text("\n".join(lines))
    return fresh.replace(file)


def valid(registry: Registry) -> Tokens:
    return Tokens(TOKEN, None, registry)


class Upstream:
    """A relay that answers, and remembers that it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        self.asked.append(rpc.path)
        return b""

    def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
        self.asked.append(rpc.path)
        raise ConnectionError("nobody there")


def call(channel: grpc.Channel, path: str, token: str | None) -> grpc.StatusCode:
    """One message and the end of the stream: on the wire every kind of call looks so."""
    metadata = [] if token is None else [("authentication", token)]
    try:
        channel.unary_unary(path)(b"\n\x01x", timeout=TIMEOUT_S, metadata=metadata)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


PATHS = (*BY_PATH, "/nobody.Serves/this")


def test_every_call_without_a_valid_token_is_refused_and_nothing_of_it_kept(
    serve: Callable[..., Any],
) -> None:
    upstream = Upstream()
    serving = serve(upstream, valid)
    with grpc.insecure_channel(serving.address) as channel:
        found = {
            (path, how): call(channel, path, token)
            for path in PATHS
            for how, token in SHOWN.items()
        }

    denied = grpc.StatusCode.PERMISSION_DENIED
    assert {key: code for key, code in found.items() if code is not denied} == {}
    assert (serving.appends, upstream.asked) == ([], [])
    wrong = (len(SHOWN) - 1) * len(PATHS)
    assert serving.counted(f'receiver_calls_denied_total{{reason="missing_token"}} {len(PATHS)}')
    assert serving.counted(f'receiver_calls_denied_total{{reason="wrong_token"}} {wrong}')


def test_every_call_with_a_valid_token_goes_where_it_would_go_without_any(
    serve: Callable[..., Any],
) -> None:
    asked, open_to_all = Upstream(), Upstream()
    found = []
    for serving, token in ((serve(asked, valid), TOKEN), (serve(open_to_all), None)):
        with grpc.insecure_channel(serving.address) as channel:
            codes = {path: call(channel, path, token) for path in PATHS}
        found.append((codes, serving.appends))

    assert found[0] == found[1]
    assert asked.asked == open_to_all.asked
    assert {rpc.path for rpc in RPCS if rpc.handling is Handling.ASK} == set(asked.asked)
    kept = [found[0][0][rpc.path] for rpc in RPCS if rpc.handling is Handling.KEEP]
    assert set(kept) == {grpc.StatusCode.OK}


def test_health_is_told_to_everybody(serve: Callable[..., Any]) -> None:
    serving = serve(None, valid)
    with grpc.insecure_channel(serving.address) as channel:
        assert call(channel, HEALTH_CHECK.decode(), None) is grpc.StatusCode.OK


@pytest.mark.parametrize("post", POSTS, ids=lambda post: f"{post.path}-{post.kind.name}")
def test_every_path_without_a_valid_token_is_401_and_nothing_of_it_is_kept(post: Post) -> None:
    async def talk(rig: Rig) -> None:
        for token in SHOWN.values():
            shown = {} if token is None else {"Authentication": token}
            answer = await rig.post(post.path, post.body, {**post.headers, **shown})
            assert answer.status == 401
            assert "www-authenticate" in answer.headers
            assert b"authentication" in answer.body
        assert not rig.kept

        shown = {"Authentication": TOKEN}
        answer = await rig.post(post.path, post.body, {**post.headers, **shown})
        assert answer.status == post.status
        assert post.is_kept_as(rig.kept)
        assert rig.metric("receiver_calls_denied_total") == len(SHOWN)
        refused = f'receiver_calls_total{{rpc="{post.path}",status="401"}}'
        assert rig.metric(refused) == len(SHOWN)

    run(Rig(tokens=valid), talk)


def test_nothing_is_told_about_what_is_served_to_whom_has_no_token() -> None:
    async def talk(rig: Rig) -> None:
        assert (await rig.post("/nowhere")).status == 401
        assert (await rig.post("/v3/segments", method="GET")).status == 401

    run(Rig(tokens=valid), talk)


def test_there_is_a_request_of_the_matrix_for_every_endpoint() -> None:
    kept = {one.path for one in ENDPOINTS.values() if one.kind is not Kind.NONE}
    assert {post.path for post in POSTS} == kept


def test_tokens_of_the_text_and_of_the_file_are_all_valid(file: Path) -> None:
    tokens = Tokens("written", write(file, "# agents", "", f"  {TOKEN}\t", OTHER, ""), Registry())
    tokens.start()

    shown = [b"written", TOKEN.encode(), OTHER.encode(), b" written ", b"# agents", b"", None]
    assert [tokens.admits(one) for one in shown] == [True, True, True, True, False, False, False]


def test_a_token_is_replaced_while_calls_come(file: Path, serve: Callable[..., Any]) -> None:
    def from_file(registry: Registry) -> Tokens:
        tokens = Tokens("", file, registry)
        tokens.start()
        return tokens

    path = next(rpc.path for rpc in RPCS if rpc.handling is Handling.KEEP)
    ok, denied = grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED
    with grpc.insecure_channel(serve(None, from_file).address) as channel:
        assert [call(channel, path, one) for one in (TOKEN, OTHER, "new")] == [ok, ok, denied]
        write(file, OTHER, "new")
        assert [call(channel, path, one) for one in (TOKEN, OTHER, "new")] == [denied, ok, ok]


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: write(file, "# none", "")])
def test_a_file_that_is_spoilt_leaves_its_tokens_valid_and_is_told_once(
    file: Path, spoil: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    tokens = Tokens("", file, Registry())
    tokens.start()
    spoil(file)

    assert [tokens.admits(one.encode()) for one in (TOKEN, OTHER, TOKEN)] == [True] * 3
    said = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(said) == 1
    assert str(file) in said[0].getMessage()
    assert TOKEN not in said[0].getMessage()
    write(file, "new")
    assert [tokens.admits(one.encode()) for one in (TOKEN, "new")] == [False, True]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No such file"),
        (b"# nothing but words\n", "it has 0 tokens"),
        (b"x\n" * (TOKENS_MAX + 1), f"it has {TOKENS_MAX + 1} tokens"),
        (b"x" * (FILE_BYTES_MAX + 1), "it has more than"),
        ("gebäck".encode(), "not all ASCII"),
        (b"secret\x07", "printable ASCII"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_at_the_start(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    file = tmp_path / "tokens"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError, match=complaint) as refused:
        Tokens("", file, Registry()).start()
    assert str(file) in str(refused.value)
    assert "secret" not in str(refused.value)


def test_every_token_is_compared_to_its_end_whichever_fits(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return hmac_compare(one, other)

    hmac_compare = hmac.compare_digest
    monkeypatch.setattr(room.hmac, "compare_digest", compare)
    tokens = Tokens("first", file, Registry())
    tokens.start()
    for shown in (b"first", OTHER.encode(), b"x", b"a much longer one than all of them are"):
        tokens.admits(shown)

    assert compared == [(32, 32)] * 12


def test_a_flood_of_refused_calls_is_one_line_of_the_log_for_each_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, registry = HandClock(), Registry()
    tokens = Tokens(TOKEN, None, registry, clock)
    for _ in range(100):
        tokens.admits(b"secret")
    clock.seconds = LOG_INTERVAL_S
    tokens.admits(None)

    said = [record.getMessage() for record in caplog.records]
    assert [line.split(": ", 1)[1] for line in said] == [
        "1, the last: wrong_token",
        "100, the last: missing_token",
    ]
    assert 'receiver_calls_denied_total{reason="wrong_token"} 100' in registry.render()


def test_servers_without_tokens_do_not_import_them() -> None:
    """hashlib brings OpenSSL, which a sidecar that speaks plain text does without."""
    code = (
        "import sys, skyfarer.wire.server, skyfarer.wire.http.server\n"
        "print('skyfarer.wire.tokens' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "False"

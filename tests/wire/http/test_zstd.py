"""Bodies with content-encoding zstd, whose bounds are those of gzip."""

from __future__ import annotations

import os
import sys

import pytest

from skyfarer.base.units import KIB, MIB
from wire.http.posts import POSTS
from wire.http.rig import PROTOBUF, Rig, run

zstd = pytest.importorskip("backports.zstd")

ZSTD = {"Content-Encoding": "zstd"}
EXPORT = next(post for post in POSTS if post.path == "/v1/traces")


def noise(size: int) -> bytes:
    """A protobuf message of 5 bytes more than that, which shrinks to half of it."""
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 | 0x80, 0])
    return b"\x0a" + length + os.urandom(size).hex().encode()[:size]


def test_a_body_is_inflated_to_exactly_its_bound_and_not_beyond() -> None:
    async def talk(rig: Rig) -> None:
        for size, status in ((100 * KIB, 200), (100 * KIB + 1, 413)):
            body = noise(size)
            packed = zstd.compress(body)
            answer = await rig.post("/v1/traces", packed, {**PROTOBUF, **ZSTD})
            assert answer.status == status
            assert ((EXPORT.kind, body) in rig.kept) is (status == 200)

    run(Rig(body_bytes_max=100 * KIB + 5), talk)


def test_a_body_may_drip_in() -> None:
    async def talk(rig: Rig) -> None:
        packed = zstd.compress(EXPORT.body)
        head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        head += b"Content-Type: application/x-protobuf\r\nContent-Encoding: zstd\r\n"
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in packed) + b"0\r\n\r\n"
        answer = await rig.say(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
        assert answer.startswith(b"HTTP/1.1 200")
        assert EXPORT.is_kept_as(rig.kept)

    run(Rig(), talk)


def test_what_is_cut_short_followed_by_more_or_nonsense_is_400() -> None:
    packed = zstd.compress(EXPORT.body)

    async def talk(rig: Rig) -> None:
        for body in (packed[:-1], packed + b"x", packed + packed, b"nonsense", b""):
            answer = await rig.post("/v1/traces", body, {**PROTOBUF, **ZSTD})
            assert answer.status == 400, body
            assert b"cannot be inflated" in answer.body
        assert not rig.kept

    run(Rig(), talk)


def test_a_bomb_is_413_and_a_frame_that_wants_a_huge_window_400() -> None:
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    wide = compressor.compress(noise(10 * KIB)) + compressor.flush()

    async def talk(rig: Rig) -> None:
        for body, status in ((zstd.compress(bytes(50 * MIB)), 413), (wide, 400)):
            answer = await rig.post("/v1/traces", body, {**PROTOBUF, **ZSTD})
            assert answer.status == status
        assert not rig.kept

    run(Rig(), talk)


def test_without_the_module_it_is_415_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "backports", None)

    async def talk(rig: Rig) -> None:
        answer = await rig.post("/v1/traces", EXPORT.body, {**PROTOBUF, **ZSTD})
        assert answer.status == 415
        assert b"skyfarer[zstd]" in answer.body
        assert answer.headers["accept-encoding"] == "gzip, deflate"

    run(Rig(), talk)

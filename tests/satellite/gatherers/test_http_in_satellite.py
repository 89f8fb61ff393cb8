"""What is posted to a satellite, as its upstream gets it."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from skyfarer.wire import messages
from skyfarer.wire.rpc import Kind

PROTOBUF = "application/x-protobuf"
SPANS = b"\n\x02\n\x00"
ENDLESS = bytes.fromhex("0a" + "ff" * 9 + "01")
NESTED = bytes.fromhex("0a 0b" + "0a" + "ff" * 9 + "01")


async def post(address: tuple[str, int], path: str, body: bytes, content_type: str) -> int:
    url = "http://{}:{}{}".format(*address, path)

    def ask() -> int:
        request = urllib.request.Request(url, body, {"Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            return refused.code

    return await asyncio.to_thread(ask)


def test_json_and_otlp_reach_the_upstream_by_the_calls_grpc_agents_would_have_made(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig() as r:
            native = r.satellite.address("http-server")
            otlp = r.satellite.address("otlp-http-server")
            segments = json.dumps([{"traceId": "a"}, {"traceId": "b"}]).encode()
            assert await post(native, "/v3/segments", segments, "application/json") == 200
            assert await post(otlp, "/v1/traces", SPANS, PROTOBUF) == 200
            assert await post(native, "/v1/traces", SPANS, PROTOBUF) == 404
            await r.until_empty()
            kept = r.upstream.payloads(Kind.SEGMENT)
            assert [messages.SegmentObject.FromString(one).traceId for one in kept] == ["a", "b"]
            assert r.upstream.payloads(Kind.OTLP_TRACES) == [SPANS]

    asyncio.run(scenario())


def test_of_posted_protobuf_the_top_level_is_judged_and_nothing_inside(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig() as r:
            otlp = r.satellite.address("otlp-http-server")
            assert await post(otlp, "/v1/traces", ENDLESS, PROTOBUF) == 400
            assert await post(otlp, "/v1/traces", NESTED, PROTOBUF) == 200
            await r.until_empty()
            assert r.upstream.payloads(Kind.OTLP_TRACES) == [NESTED]

    asyncio.run(scenario())


def test_what_was_answered_200_is_in_the_queue_while_the_upstream_is_away(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig(up=False) as r:
            native = r.satellite.address("http-server")
            assert await post(native, "/logging", b"\n\x01x", PROTOBUF) == 200
            assert r.satellite.ledger().queued == 1
            await r.stop_satellite(0.0)
            await r.upstream.start()
            await r.start_satellite()
            await r.until_empty()
            assert r.upstream.payloads(Kind.LOG) == [b"\n\x01x"]

    asyncio.run(scenario())

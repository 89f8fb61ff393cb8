"""The shipped configuration: everything that can come in, by whichever port, goes out."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import grpc

from skyfarer.wire.messages import SegmentObject
from skyfarer.wire.rpc import Kind

OTLP = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
ENVOY = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"
WAIT_S = 120.0


async def post(port: int, path: str, body: bytes, kind: str) -> int:
    headers = {"Content-Type": kind}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)

    def send() -> int:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return int(response.status)

    return await asyncio.to_thread(send)


def test_every_port_of_the_shipped_configuration_leads_to_the_upstream(
    rig: Callable[..., Any],
) -> None:
    environ = {"SKYFARER_SATELLITE_OTLP_SENDER_FLUSH_TIME": "20"}

    async def scenario() -> None:
        async with rig(**environ) as r:
            ports = {name: port for name, (_, port) in r.satellite.listening.items()}
            assert set(ports) == {
                "grpc-server",
                "http-server",
                "otlp-grpc-server",
                "otlp-http-server",
            }
            segment = {"traceId": "t", "traceSegmentId": "s", "service": "order"}
            body = json.dumps([segment]).encode()
            assert await post(ports["http-server"], "/v3/segments", body, "application/json") == 200
            protobuf = "application/x-protobuf"
            assert await post(ports["otlp-http-server"], "/v1/traces", b"\n\x00", protobuf) == 200
            await r.collect([b"an access log"], ENVOY)
            with grpc.insecure_channel(f"127.0.0.1:{ports['otlp-grpc-server']}") as channel:
                export = channel.unary_unary(OTLP)
                await asyncio.to_thread(lambda: export(b"\n\x00", timeout=WAIT_S))
            await r.until_empty()
            (payload,) = r.upstream.payloads(Kind.SEGMENT)
            assert SegmentObject.FromString(payload).traceSegmentId == "s"
            assert r.upstream.payloads(Kind.OTLP_TRACES) == [b"\n\x00", b"\n\x00"]
            assert r.upstream.payloads(Kind.ENVOY_ACCESS_LOG) == [b"an access log"]
            books = {pipe.name: pipe.ledger().delivered for pipe in r.satellite.pipes}
            assert books == {"native": 2, "otlp": 2}

    asyncio.run(scenario())

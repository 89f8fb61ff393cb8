from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import KIB
from skyfarer.satellite import dead_letters
from skyfarer.testing.traces import segment
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.messages import InstancePingPkg, InstanceProperties, SegmentCollection
from skyfarer.wire.rpc import Kind

TRACES = "/skywalking.v3.TraceSegmentReportService"
MANAGEMENT = "/skywalking.v3.ManagementService"


def segments(count: int, endpoint: str = "GET:/orders") -> list[bytes]:
    made = [
        segment("order", "order-1", endpoint, 1_700_000_000_000 + n, 10 + n) for n in range(count)
    ]
    return [one.SerializeToString() for one in made]


def once(payloads: list[bytes]) -> list[bytes]:
    """Of a call that failed the upstream may have kept the beginning, which then comes again."""
    return list(dict.fromkeys(payloads))


def test_what_agents_send_reaches_the_upstream_unchanged_and_in_order(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig() as r:
            sent = segments(300)
            for start in range(0, 300, 30):
                assert await r.collect(sent[start : start + 30]) == b""
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == sent
            assert r.satellite.ledger().delivered == 300

    asyncio.run(scenario())


def test_management_messages_travel_too_each_in_its_own_call(rig: Callable[..., Any]) -> None:
    properties = InstanceProperties(service="order", serviceInstance="order-1").SerializeToString()
    ping = InstancePingPkg(service="order", serviceInstance="order-1").SerializeToString()

    async def scenario() -> None:
        async with rig() as r:
            await r.unary(f"{MANAGEMENT}/reportInstanceProperties", properties)
            await r.unary(f"{MANAGEMENT}/keepAlive", ping)
            await r.unary("/ManagementService/keepAlive", ping)
            await r.until_empty()
            assert r.upstream.records == [
                (Kind.INSTANCE_PROPERTIES, properties),
                (Kind.INSTANCE_PING, ping),
                (Kind.INSTANCE_PING, ping),
            ]

    asyncio.run(scenario())


def test_a_collection_is_forwarded_segment_by_segment(rig: Callable[..., Any]) -> None:
    made = [segment("order", "order-1", "GET:/", 1_700_000_000_000, n) for n in range(5)]

    async def scenario() -> None:
        async with rig() as r:
            collection = SegmentCollection(segments=made).SerializeToString()
            await r.unary(f"{TRACES}/collectInSync", collection)
            await r.until_empty()
            arrived = r.upstream.payloads(Kind.SEGMENT)
            assert arrived == [one.SerializeToString() for one in made]

    asyncio.run(scenario())


def test_an_upstream_that_is_down_at_start_gets_everything_when_it_comes(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig(up=False) as r:
            sent = segments(50)
            await r.collect(sent)
            ledger = r.satellite.ledger()
            assert (ledger.accepted, ledger.queued, ledger.delivered) == (50, 50, 0)
            await r.upstream.start()
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == sent

    asyncio.run(scenario())


def test_an_outage_in_between_loses_nothing_and_reorders_nothing(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig() as r:
            before, during, after = segments(20), segments(20), segments(20)
            await r.collect(before)
            await r.until_empty()
            await r.upstream.stop()
            await r.collect(during)
            await r.upstream.start()
            await r.collect(after)
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == before + during + after

    asyncio.run(scenario())


def test_an_overloaded_upstream_is_asked_again_until_it_takes_the_batch(
    rig: Callable[..., Any],
) -> None:
    refusals = 5

    def overloaded(kind: int, payloads: Sequence[bytes]) -> None:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise RetryableError("the queue is full")

    async def scenario() -> None:
        async with rig(Upstream(overloaded)) as r:
            sent = segments(10)
            await r.collect(sent)
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == sent
            _, metrics = await r.get("/metrics")
            assert 'sender_retry_count{pipe="native"} 5' in metrics
            assert r.satellite.ledger().dropped == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("poisoned", [{0}, {99}, {17, 18, 60}, set(range(0, 100, 3))])
def test_refused_records_are_isolated_parked_and_counted_and_the_others_delivered(
    rig: Callable[..., Any], poisoned: set[int]
) -> None:
    sent = segments(100)
    poison = {sent[n] for n in poisoned}

    def strict(kind: int, payloads: Sequence[bytes]) -> None:
        if poison.intersection(map(bytes, payloads)):
            raise PermanentError("that is no segment")

    async def scenario() -> None:
        async with rig(Upstream(strict)) as r:
            await r.collect(sent)
            await r.until_empty()
            good = [one for one in sent if one not in poison]
            assert once(r.upstream.payloads(Kind.SEGMENT)) == good
            ledger = r.satellite.ledger()
            assert ledger.dropped == {"rejected": len(poison)}
            assert ledger.delivered == len(good)
            assert ledger.balanced
            letters = list(dead_letters.read(r.directory / "native" / "dead-letters"))
            assert [letter.sequence for letter in letters] == sorted(poisoned)
            assert {letter.payload for letter in letters} == poison
            assert {letter.kind for letter in letters} == {Kind.SEGMENT}
            assert all("that is no segment" in letter.reason for letter in letters)

    asyncio.run(scenario())


def test_a_message_over_the_upstreams_limit_does_not_block_those_behind_it(
    rig: Callable[..., Any],
) -> None:
    sent = segments(5) + segments(1, "x" * 20 * KIB) + segments(5)

    async def scenario() -> None:
        async with rig(Upstream(message_bytes_max=10 * KIB)) as r:
            await r.collect(sent)
            await r.until_empty()
            assert once(r.upstream.payloads(Kind.SEGMENT)) == sent[:5] + sent[6:]
            assert r.satellite.ledger().dropped == {"rejected": 1}

    asyncio.run(scenario())


def test_batches_tell_a_stock_grpc_server_who_sent_them_and_from_which_record_on(
    rig: Callable[..., Any],
) -> None:
    calls: list[tuple[dict[str, str], list[bytes]]] = []

    class Recorder(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            metadata = dict(details.invocation_metadata)

            def take(messages: Any, context: grpc.ServicerContext) -> bytes:
                calls.append((metadata, list(messages)))
                return b""

            return grpc.stream_unary_rpc_method_handler(take)

    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Recorder(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    async def scenario() -> None:
        environ = {
            "SATELLITE_TRACINGPIPE_SENDER_MAX_BUFFER_SIZE": "40",
            "SATELLITE_GRPC_CLIENT": f"127.0.0.1:{port}",
            "SATELLITE_GRPC_AUTHENTICATION": "secret",
        }
        async with rig(**environ) as r:
            sent = segments(100)
            await r.collect(sent)
            await r.until_empty()
            producer = r.satellite.pipes[0].backlog.producer
            assert [message for _, messages in calls for message in messages] == sent
            expected = 0
            for metadata, messages in calls:
                assert len(messages) <= 40
                assert metadata["skyfarer-producer"] == producer
                assert metadata["skyfarer-first-sequence"] == str(expected)
                assert metadata["authentication"] == "secret"
                expected += len(messages)

    try:
        asyncio.run(scenario())
    finally:
        server.stop(None).wait()


def test_what_is_queued_when_it_stops_is_sent_by_the_next_start(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(up=False) as r:
            sent = segments(30)
            await r.collect(sent)
            await r.stop_satellite(0.2)
            await r.upstream.start()
            await r.start_satellite()
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == sent
            ledger = r.satellite.ledger()
            assert (ledger.accepted, ledger.delivered) == (30, 30)

    asyncio.run(scenario())


def test_stopping_hands_over_what_is_queued_first(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(SATELLITE_TRACINGPIPE_SENDER_FLUSH_TIME="60000") as r:
            sent = segments(30)
            await r.collect(sent)
            await r.stop_satellite(30.0)
            assert r.upstream.payloads(Kind.SEGMENT) == sent

    asyncio.run(scenario())

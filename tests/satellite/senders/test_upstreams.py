"""The gRPC client and several upstreams: turns, those that fail, those a key belongs to."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.senders.finding import Endpoint, resolved
from skyfarer.satellite.senders.grpc import GrpcForwarder
from skyfarer.satellite.senders.grpc_config import GrpcClientConfig, TimeoutConfig
from skyfarer.satellite.senders.upstreams import EJECTION
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.programs import free_port
from skyfarer.wire import messages
from skyfarer.wire.metadata import Metadata
from skyfarer.wire.rpc import BY_PATH, Kind
from skyfarer.wire.status import StatusError
from third_parties.grpc_upstream import Call, GrpcUpstream

Upstreams = Callable[..., GrpcUpstream]
WAIT_S = 120.0
ASKED = BY_PATH["/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"]
# A grpcio server of its own, to be frozen.
FROZEN = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from third_parties.grpc_upstream import GrpcUpstream
print(GrpcUpstream().start().port, flush=True)
sys.stdin.read()
"""


class Rig:
    def __init__(self, *addresses: str, **config: Any) -> None:
        self.registry = Registry()
        self.clock = HandClock()
        made = GrpcClientConfig(server_addr=",".join(addresses), **config)
        self.forwarder = GrpcForwarder(
            made, lambda: "queue", 500, self.registry, clock=self.clock, random=Random(7)
        )
        self._next = 0

    def play(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            await self.forwarder.start()
            try:
                async with asyncio.timeout(WAIT_S):
                    await scenario()
            finally:
                await self.forwarder.stop(1.0)

        asyncio.run(whole())

    async def send(self, *payloads: bytes, kind: int = Kind.SEGMENT) -> None:
        await self.forwarder.send(Batch(self._next, kind, payloads))
        self._next += len(payloads)

    def counted(self, line: str) -> bool:
        return line in self.registry.render().splitlines()


def meter(instance: str, name: str = "cpu") -> bytes:
    single = messages.meter.MeterSingleValue(name=name, value=1)
    data = messages.meter.MeterData(
        singleValue=single, service="shop", serviceInstance=instance, timestamp=10
    )
    return data.SerializeToString()


def instances(server: GrpcUpstream) -> list[str]:
    return [
        one.serviceInstance
        for message in server.messages
        for one in messages.meter.MeterDataCollection.FromString(message).meterData
    ]


def test_batches_go_round(upstream: Upstreams) -> None:
    servers = [upstream() for _ in range(3)]
    rig = Rig(*(server.address for server in servers))

    async def scenario() -> None:
        for number in range(9):
            await rig.send(b"%d" % number)

    rig.play(scenario)
    assert [len(server.calls) for server in servers] == [3, 3, 3]


def test_a_dead_one_is_left_out_and_costs_one_attempt_until_its_time_is_up(
    upstream: Upstreams,
) -> None:
    alive, other, dead = upstream(), upstream(), upstream()
    dead.stop()
    rig = Rig(alive.address, other.address, dead.address)
    line = f'sender_ejections_total{{upstream="{dead.address}"}}'

    async def scenario() -> None:
        for number in range(10):
            await rig.send(b"%d" % number)
        assert rig.counted(f"{line} 1")
        assert rig.counted("sender_upstreams_ejected 1")
        rig.clock.seconds += EJECTION.maximum_s
        for _ in range(3):
            await rig.send(b"later")
        assert rig.counted(f"{line} 2")
        dead.start()
        rig.clock.seconds += EJECTION.maximum_s
        for _ in range(3):
            await rig.send(b"again")
        assert rig.counted("sender_upstreams_ejected 0")

    rig.play(scenario)
    assert len(alive.calls) + len(other.calls) + len(dead.calls) == 16
    assert dead.messages == [b"again"]


def test_when_all_are_dead_one_is_tried_at_a_time_and_the_first_to_come_back_gets_it(
    upstream: Upstreams,
) -> None:
    servers = [upstream() for _ in range(3)]
    rig = Rig(*(server.address for server in servers))
    for server in servers:
        server.stop()

    def attempts() -> float:
        rows = rig.registry.render().splitlines()
        return sum(float(row.split()[-1]) for row in rows if row.startswith("sender_ejections"))

    async def scenario() -> None:
        with pytest.raises(RetryableError):
            await rig.send(b"a")
        assert attempts() == 3
        with pytest.raises(RetryableError):
            await rig.send(b"a")
        assert attempts() == 4
        for server in servers:
            server.start()
        await rig.send(b"a")
        assert rig.counted("sender_upstreams_ejected 2")

    rig.play(scenario)
    assert [message for server in servers for message in server.messages] == [b"a"]


def test_an_upstream_that_comes_and_goes_loses_nothing(upstream: Upstreams) -> None:
    steady, flapping = upstream(), upstream()
    rig = Rig(steady.address, flapping.address)

    async def scenario() -> None:
        for number in range(60):
            if number % 10 == 3:
                flapping.stop()
            if number % 10 == 8:
                flapping.start()
                rig.clock.seconds += EJECTION.maximum_s
            await rig.send(b"%d" % number)

    rig.play(scenario)
    arrived = {*steady.messages, *flapping.messages}
    assert arrived == {b"%d" % number for number in range(60)}
    assert flapping.messages


def test_one_that_is_frozen_in_the_middle_of_a_connection_is_left_at_the_deadline(
    upstream: Upstreams,
) -> None:
    alive = upstream()
    child = subprocess.Popen(
        [sys.executable, "-c", FROZEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None and child.stdin is not None
    frozen = f"127.0.0.1:{int(child.stdout.readline())}"
    rig = Rig(frozen, alive.address, timeout=TimeoutConfig(unary="3s", stream="3s"))

    async def scenario() -> None:
        await rig.send(b"to both, first the one")
        await rig.send(b"and then the other")
        child.send_signal(signal.SIGSTOP)
        for number in range(6):
            await rig.send(b"%d" % number)
        assert rig.counted(f'sender_ejections_total{{upstream="{frozen}"}} 1')

    try:
        rig.play(scenario)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
    assert set(alive.messages) >= {b"%d" % number for number in range(6)}


def test_the_meters_of_an_instance_meet_at_one_upstream(upstream: Upstreams) -> None:
    servers = [upstream() for _ in range(3)]
    rig = Rig(*(server.address for server in servers))
    everybody = [f"instance-{number}" for number in range(60)]

    async def scenario() -> None:
        for _ in range(4):
            await rig.send(*map(meter, everybody), kind=Kind.METER)
        collection = [
            messages.meter.MeterDataCollection(
                meterData=[messages.meter.MeterData.FromString(meter(one))]
            ).SerializeToString()
            for one in everybody
        ]
        await rig.send(*collection, kind=Kind.METER_COLLECTION)

    rig.play(scenario)
    seen = [set(instances(server)) for server in servers]
    assert sum(map(len, seen)) == len(set.union(*seen)) == 60
    assert min(map(len, seen)) >= 4  # 20 on average: ports differ, and with them who has whom
    assert all(len(server.calls) == 5 for server in servers)


def test_otlp_metrics_of_a_resource_meet_at_one_upstream_each_in_a_call_of_its_own(
    upstream: Upstreams,
) -> None:
    servers = [upstream() for _ in range(3)]
    rig = Rig(*(server.address for server in servers))
    # resource_metrics { resource { … } … }, as bytes: the messages are not ours to describe.
    sent = [
        b"\x0a\x08\x0a\x04\x0a\x02%02d\x12\x00" % (number % 15) + b"\x12\x01%c" % number
        for number in range(60)
    ]

    async def scenario() -> None:
        for start in range(0, 60, 15):
            await rig.send(*sent[start : start + 15], kind=Kind.OTLP_METRICS)

    rig.play(scenario)
    resources = [{message[:10] for message in server.messages} for server in servers]
    assert sum(map(len, resources)) == len(set.union(*resources)) == 15
    assert sum(len(server.calls) for server in servers) == 60


def test_when_one_is_gone_its_keys_move_and_no_others_and_come_back_with_it(
    upstream: Upstreams,
) -> None:
    servers = [upstream() for _ in range(3)]
    rig = Rig(*(server.address for server in servers))
    everybody = [f"instance-{number}" for number in range(60)]

    async def owners() -> list[set[str]]:
        for server in servers:
            server.calls.clear()
        await rig.send(*map(meter, everybody), kind=Kind.METER)
        return [set(instances(server)) for server in servers]

    async def scenario() -> None:
        before = await owners()
        servers[1].stop()
        without = await owners()
        assert without[0] > before[0] and without[2] > before[2] and not without[1]
        assert without[0] | without[2] == set(everybody)
        servers[1].start()
        rig.clock.seconds += EJECTION.maximum_s
        assert await owners() == before

    rig.play(scenario)


def test_of_a_split_batch_only_the_part_that_failed_goes_again(upstream: Upstreams) -> None:
    troubled = {"now": True}
    one, other = upstream(), upstream()

    def only_its_own(call: Call, context: grpc.ServicerContext) -> bytes:
        if troubled["now"] and one.calls:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "not the other's as well")
        return b""

    def nothing(call: Call, context: grpc.ServicerContext) -> bytes:
        if troubled["now"]:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        return b""

    one.answer, other.answer = only_its_own, nothing
    rig = Rig(one.address, other.address)
    sent = [f"instance-{number}" for number in range(20)]

    async def scenario() -> None:
        with pytest.raises(RetryableError):
            await rig.send(*map(meter, sent), kind=Kind.METER)
        assert 0 < len(instances(one)) < 20
        troubled["now"] = False
        await rig.send(*map(meter, sent), kind=Kind.METER)

    rig.play(scenario)
    assert sorted([*instances(one), *instances(other)]) == sorted(sent)


def test_a_question_goes_to_the_next_when_one_is_not_there(upstream: Upstreams) -> None:
    alive, dead = upstream(), upstream()
    dead.stop()
    rig = Rig(dead.address, alive.address)

    async def scenario() -> None:
        for _ in range(4):
            assert await rig.forwarder.relay.ask(ASKED, b"?", Metadata()) == b""
        alive.stop()
        with pytest.raises(StatusError):
            await rig.forwarder.relay.ask(ASKED, b"?", Metadata(timeout_s=1.0))

    rig.play(scenario)
    assert len(alive.calls) == 4


@pytest.fixture
def two_hosts() -> Iterator[tuple[int, list[GrpcUpstream]]]:
    """Two servers with one port, as the addresses behind a name have."""
    port = free_port()
    servers = []
    for host in ("127.0.0.1", "127.0.0.2"):
        server = GrpcUpstream(host=host)
        server.port = port
        servers.append(server.start())
    yield port, servers
    for server in servers:
        server.stop()


def test_a_name_is_looked_up_again_and_its_addresses_followed(
    two_hosts: tuple[int, list[GrpcUpstream]],
) -> None:
    port, servers = two_hosts
    rig = Rig(f"oap.example:{port}", finder_type="dns", check_period=1)
    found: list[str] = []
    lookups: asyncio.Queue[None] = asyncio.Queue()

    async def lookup(host: str, port: int, **_: Any) -> list[Any]:
        lookups.put_nowait(None)
        if not found:
            raise socket.gaierror(socket.EAI_AGAIN, "not yet")
        family = socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    async def looked_up() -> None:
        """A lookup that began after this did is over."""
        while not lookups.empty():
            lookups.get_nowait()
        for _ in range(2):
            await lookups.get()

    async def scenario() -> None:
        asyncio.get_running_loop().getaddrinfo = lookup  # type: ignore[method-assign,assignment]
        with pytest.raises(RetryableError, match="by name"):
            await rig.send(b"x")
        found.append("127.0.0.1")
        await rig.send(b"x")
        found.append("127.0.0.2")
        await looked_up()
        await rig.send(b"x")
        await rig.send(b"x")
        assert (len(servers[0].calls), len(servers[1].calls)) == (2, 1)
        found.remove("127.0.0.1")
        await looked_up()
        await rig.send(b"x")
        await rig.send(b"x")
        assert (len(servers[0].calls), len(servers[1].calls)) == (2, 3)
        found.clear()
        await looked_up()
        await rig.send(b"the last known are kept")

    rig.play(scenario)
    assert servers[1].messages[-1] == b"the last known are kept"


def test_what_stands_behind_a_name_is_sorted_and_told_apart_by_address() -> None:
    async def scenario() -> tuple[Endpoint, ...]:
        return await resolved([Endpoint("127.0.0.1", 7, "a"), Endpoint("127.0.0.1", 5, "b")])

    found = asyncio.run(scenario())
    assert [(one.host, one.port, one.name) for one in found] == [
        ("127.0.0.1", 5, "127.0.0.1"),
        ("127.0.0.1", 7, "127.0.0.1"),
    ]


def test_meters_without_an_instance_share_a_call_and_go_anywhere(upstream: Upstreams) -> None:
    servers = [upstream(), upstream()]
    rig = Rig(*(server.address for server in servers))

    async def scenario() -> None:
        await rig.send(*[b"\x0a\x00", b"no message at all"] * 20, kind=Kind.METER_COLLECTION)

    rig.play(scenario)
    assert sum(len(server.calls) for server in servers) == 1
    assert sum(len(server.messages) for server in servers) == 40


def test_three_that_are_restarted_one_after_the_other_never_fail_a_batch(
    upstream: Upstreams,
) -> None:
    servers = [upstream() for _ in range(3)]
    rig = Rig(*(server.address for server in servers))
    sent = 0

    async def scenario() -> None:
        nonlocal sent
        for server in servers:
            stopping = asyncio.create_task(asyncio.to_thread(server.stop, 5.0))
            while not stopping.done():
                await rig.send(b"%d" % sent)
                sent += 1
            await rig.send(b"%d" % sent)
            sent += 1
            server.start()
            rig.clock.seconds += EJECTION.maximum_s
            for _ in range(3):
                await rig.send(b"%d" % sent)
                sent += 1

    rig.play(scenario)
    arrived = {message for server in servers for message in server.messages}
    assert arrived == {b"%d" % number for number in range(sent)}

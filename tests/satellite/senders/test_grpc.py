"""The gRPC client against one grpcio server: how a batch is cut, numbered, refused and resent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest

from skyfarer.base.binding import bind
from skyfarer.base.errors import ConfigError, PermanentError, RetryableError
from skyfarer.satellite.contracts import AccessDenied, Batch, Unexplained
from skyfarer.satellite.senders.calls import ROUTING_FIELDS
from skyfarer.satellite.senders.grpc import UNARY_CALLS_MAX, GrpcForwarder
from skyfarer.satellite.senders.grpc_config import GrpcClientConfig, TimeoutConfig
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire import messages
from skyfarer.wire.metadata import Metadata
from skyfarer.wire.rpc import BY_PATH, RPCS, Kind
from skyfarer.wire.status import Status, StatusError
from third_parties.grpc_upstream import Call, GrpcUpstream

Upstreams = Callable[..., GrpcUpstream]
WAIT_S = 120.0
ASKED = BY_PATH["/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"]


def played(
    config: GrpcClientConfig,
    scenario: Callable[[GrpcForwarder], Awaitable[None]],
    registry: Registry | None = None,
) -> None:
    async def whole() -> None:
        forwarder = GrpcForwarder(config, lambda: "queue-7", 500, registry or Registry())
        await forwarder.start()
        try:
            async with asyncio.timeout(WAIT_S):
                await scenario(forwarder)
        finally:
            await forwarder.stop(1.0)

    asyncio.run(whole())


def to(server: GrpcUpstream, **other: Any) -> GrpcClientConfig:
    return GrpcClientConfig(server_addr=server.address, **other)


def meter(instance: str, name: str, value: float, at_ms: int = 1_700_000_000_000) -> bytes:
    single = messages.meter.MeterSingleValue(name=name, value=value)
    data = messages.meter.MeterData(
        singleValue=single, service="shop", serviceInstance=instance, timestamp=at_ms
    )
    return data.SerializeToString()


def log(service: str, text: str) -> bytes:
    body = messages.log.LogDataBody(text=messages.log.TextLog(text=text))
    return messages.log.LogData(service=service, body=body).SerializeToString()


def collections(server: GrpcUpstream) -> list[list[tuple[str, int, str]]]:
    """(instance, time, name) of each meter of each collection that came."""
    found = []
    for call in server.calls:
        assert call.path == "/skywalking.v3.MeterReportService/collectBatch"
        for message in call.messages:
            data = messages.meter.MeterDataCollection.FromString(message).meterData
            read = [(one.serviceInstance, one.timestamp, one.singleValue.name) for one in data]
            found.append(read)
    return found


def sequences(server: GrpcUpstream) -> list[tuple[str, str | None]]:
    return [
        (call.metadata["skyfarer-first-sequence"], call.metadata.get("skyfarer-sequences"))
        for call in server.calls
    ]


def test_a_batch_is_one_call_numbered_by_its_first_record(upstream: Upstreams) -> None:
    server = upstream()

    async def scenario(forwarder: GrpcForwarder) -> None:
        await forwarder.send(Batch(40, Kind.SEGMENT, (b"\x0a\x01a", b"\x0a\x01b")))

    played(to(server), scenario)
    assert [call.messages for call in server.calls] == [(b"\x0a\x01a", b"\x0a\x01b")]
    assert server.calls[0].metadata["skyfarer-producer"] == "queue-7"
    assert sequences(server) == [("40", None)]


def test_records_that_filters_left_are_numbered_one_by_one_and_those_they_made_not_at_all(
    upstream: Upstreams,
) -> None:
    server = upstream()

    async def scenario(forwarder: GrpcForwarder) -> None:
        left = Batch(40, Kind.SEGMENT, (b"", b"", b""), kept=(41, 42, 48), beyond=50)
        await forwarder.send(left)
        await forwarder.send(Batch(41, Kind.SEGMENT, (b"",), emitted=True))

    played(to(server), scenario)
    assert server.calls[0].metadata["skyfarer-sequences"] == "1-2,8"
    assert not [name for name in server.calls[1].metadata if name.startswith("skyfarer-")]


def test_a_long_list_of_numbers_is_spread_over_several_calls(upstream: Upstreams) -> None:
    server = upstream()
    kept = tuple(range(0, 2400, 2))

    async def scenario(forwarder: GrpcForwarder) -> None:
        await forwarder.send(Batch(0, Kind.SEGMENT, (b"",) * 1200, kept=kept, beyond=2400))

    played(to(server), scenario)
    assert sorted(len(call.messages) for call in server.calls) == [200, 500, 500]
    assert max(len(call.metadata["skyfarer-sequences"]) for call in server.calls) < 4096


def test_logs_of_two_services_never_share_a_call(upstream: Upstreams) -> None:
    server = upstream()
    sent = tuple(log(f"service-{number % 2}", str(number)) for number in range(6))

    async def scenario(forwarder: GrpcForwarder) -> None:
        await forwarder.send(Batch(0, Kind.LOG, sent))

    played(to(server), scenario)
    assert sorted(call.messages for call in server.calls) == sorted([sent[0::2], sent[1::2]])
    assert sorted(sequences(server)) == [("0", "0,2,4"), ("0", "1,3,5")]


def test_meters_are_packed_into_collections_of_one_instance_and_one_moment(
    upstream: Upstreams,
) -> None:
    server = upstream()
    sent = (
        meter("a", "cpu", 1, at_ms=10),
        meter("b", "cpu", 2, at_ms=10),
        meter("a", "memory", 3, at_ms=10),
        meter("a", "cpu", 4, at_ms=20),
    )

    async def scenario(forwarder: GrpcForwarder) -> None:
        await forwarder.send(Batch(7, Kind.METER, sent))

    played(to(server), scenario)
    assert collections(server) == [
        [("a", 10, "cpu"), ("a", 10, "memory")],
        [("b", 10, "cpu")],
        [("a", 20, "cpu")],
    ]
    assert sequences(server) == [("7", "(0,2),1,3")]


def test_a_routing_key_is_read_where_the_messages_description_says() -> None:
    for rpc in RPCS:
        if rpc.routing_key is None:
            continue
        kind = getattr(messages.meter, rpc.request.rpartition(".")[2]).DESCRIPTOR
        numbers = []
        for name in rpc.routing_key.split("."):
            numbers.append(kind.fields_by_name[name].number)
            kind = kind.fields_by_name[name].message_type
        assert ROUTING_FIELDS[rpc.routing_key] == tuple(numbers)


def test_records_that_need_a_call_each_go_side_by_side_and_only_the_failed_go_again(
    upstream: Upstreams,
) -> None:
    together = Counter[str]()
    everybody = Event()

    def answer(call: Call, context: grpc.ServicerContext) -> bytes:
        together[call.path] += 1
        if together.total() == 4:
            everybody.set()
        assert everybody.wait(WAIT_S), "the calls wait for each other"
        if call.messages == (b"2",) and together.total() == 4:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        return b""

    server = upstream(answer=answer)
    batch = Batch(5, Kind.INSTANCE_PING, (b"0", b"1", b"2", b"3"))

    async def scenario(forwarder: GrpcForwarder) -> None:
        assert forwarder.batch_max(Kind.INSTANCE_PING) == UNARY_CALLS_MAX
        with pytest.raises(RetryableError):
            await forwarder.send(batch)
        assert sorted(server.messages) == [b"0", b"1", b"3"]
        await forwarder.send(batch)

    played(to(server), scenario)
    assert sorted(server.messages) == [b"0", b"1", b"2", b"3"]
    assert sorted(sequences(server)) == [("5", "0"), ("5", "1"), ("5", "2"), ("5", "3")]


def failing(code: grpc.StatusCode, details: str = "") -> Callable[..., bytes]:
    def answer(call: Call, context: grpc.ServicerContext) -> bytes:
        context.abort(code, details)

    return answer


@pytest.mark.parametrize(
    ("code", "details", "meant"),
    [
        (grpc.StatusCode.UNAVAILABLE, "", RetryableError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "Watermark exceeded", RetryableError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger than max", PermanentError),
        (grpc.StatusCode.UNAUTHENTICATED, "", AccessDenied),
        (grpc.StatusCode.PERMISSION_DENIED, "", AccessDenied),
        (grpc.StatusCode.INTERNAL, "", Unexplained),
        (grpc.StatusCode.UNKNOWN, "", Unexplained),
        (grpc.StatusCode.UNIMPLEMENTED, "", PermanentError),
        (grpc.StatusCode.INVALID_ARGUMENT, "", PermanentError),
    ],
)
def test_a_status_means(
    upstream: Upstreams, code: grpc.StatusCode, details: str, meant: type[Exception]
) -> None:
    server = upstream(answer=failing(code, details))

    async def scenario(forwarder: GrpcForwarder) -> None:
        with pytest.raises(meant) as caught:
            await forwarder.send(Batch(0, Kind.SEGMENT, (b"",)))
        assert type(caught.value) is meant

    played(to(server), scenario)


def test_a_call_without_an_answer_ends_at_its_deadline_and_the_batch_goes_again(
    upstream: Upstreams,
) -> None:
    over = Event()

    def answer(call: Call, context: grpc.ServicerContext) -> bytes:
        if not over.is_set():
            over.wait(WAIT_S)
            context.abort(grpc.StatusCode.CANCELLED, "nobody waits any more")
        return b""

    server = upstream(answer=answer)

    async def scenario(forwarder: GrpcForwarder) -> None:
        for kind, limit in ((Kind.SEGMENT, "2"), (Kind.INSTANCE_PING, "1")):
            with pytest.raises(RetryableError, match=f"no answer within {limit} s"):
                await forwarder.send(Batch(0, kind, (b"a",)))
        over.set()
        await forwarder.send(Batch(0, Kind.SEGMENT, (b"a",)))

    played(to(server, timeout=TimeoutConfig(unary="1s", stream="2s")), scenario)
    assert len(server.calls) == 1


def wanting(token: dict[str, str]) -> Callable[..., bytes]:
    def answer(call: Call, context: grpc.ServicerContext) -> bytes:
        if call.metadata.get("authentication") != token["wanted"]:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "wrong token")
        return b""

    return answer


def test_a_token_that_is_renewed_in_its_file_is_used_without_a_restart(
    upstream: Upstreams, tmp_path: Path
) -> None:
    token, file = {"wanted": "first"}, tmp_path / "token"
    file.write_text("first\n")
    server = upstream(answer=wanting(token))
    batch = Batch(0, Kind.SEGMENT, (b"a",))

    async def scenario(forwarder: GrpcForwarder) -> None:
        await forwarder.send(batch)
        token["wanted"] = "second"
        with pytest.raises(AccessDenied):
            await forwarder.send(batch)
        file.unlink()
        with pytest.raises(AccessDenied):
            await forwarder.send(batch)
        file.write_text("second\n")
        await forwarder.send(batch)

    played(to(server, authentication_file=file), scenario)
    assert len(server.calls) == 2


def test_without_a_token_to_read_nothing_is_sent_yet(upstream: Upstreams, tmp_path: Path) -> None:
    server = upstream()
    file = tmp_path / "token"

    async def scenario(forwarder: GrpcForwarder) -> None:
        with pytest.raises(RetryableError, match="token"):
            await forwarder.send(Batch(0, Kind.SEGMENT, (b"a",)))
        file.write_text("now")
        await forwarder.send(Batch(0, Kind.SEGMENT, (b"a",)))

    played(to(server, authentication_file=file), scenario)
    assert [call.metadata["authentication"] for call in server.calls] == ["now"]


def test_a_question_is_answered_by_the_upstream_with_its_status(upstream: Upstreams) -> None:
    def answer(call: Call, context: grpc.ServicerContext) -> bytes:
        if call.messages == (b"?",):
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return b"commands"

    server = upstream(answer=answer)

    async def scenario(forwarder: GrpcForwarder) -> None:
        mine = Metadata((("my", "own"),), timeout_s=5.0)
        assert await forwarder.relay.ask(ASKED, b"!", mine) == b"commands"
        with pytest.raises(StatusError) as caught:
            await forwarder.relay.ask(ASKED, b"?", Metadata())
        assert (caught.value.status, caught.value.message) == (Status.NOT_FOUND, "no such service")

    played(to(server, authentication="token"), scenario)
    assert server.calls[0].metadata["my"] == "own"
    assert server.calls[0].metadata["authentication"] == "token"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"server_addr": "oap"}, "no address"),
        ({"server_addr": ","}, "from 1 to 64"),
        ({"finder_type": "kubernetes"}, "finder_type"),
        ({"check_period": "0"}, "check_period"),
        ({"timeout": {"unary": "0s"}}, "above 0"),
        ({"authentication": "ü"}, "ASCII"),
        ({"authentication": "a", "authentication_file": "b"}, "exclude"),
        ({"client_pem_path": "a.pem"}, "go together"),
    ],
)
def test_a_wrong_value_is_refused_by_name(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        bind(GrpcClientConfig, values, "satellite.yaml: client")


def test_the_keys_of_the_original_are_read() -> None:
    values: dict[str, object] = {
        "finder_type": "static",
        "server_addr": "oap-1:11800,oap-2:11800",
        "enable_tls": "false",
        "client_pem_path": "client.pem",
        "client_key_path": "client.key",
        "ca_pem_path": "ca.pem",
        "insecure_skip_verify": "false",
        "check_period": "5",
        "authentication": "",
        "timeout": {"unary": "5s", "stream": "20s"},
    }
    config = bind(GrpcClientConfig, values, "satellite.yaml: client")
    forwarder = GrpcForwarder(config, str, 1, Registry())
    assert forwarder.addresses == (("oap-1", 11800), ("oap-2", 11800))

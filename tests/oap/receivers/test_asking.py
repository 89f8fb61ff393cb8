"""Questions of agents through a real receiver: held back, released, refused, forgotten."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from oap.receivers.receiving import Rig, rig
from skyfarer.oap.core.inventory import FIRST_ID
from skyfarer.testing.programs import eventually
from skyfarer.wire.messages import v2_register
from skyfarer.wire.rpc import RPCS, Handling, Kind, Streaming

SERVICES = "/Register/doServiceRegister"
ADDRESSES = "/Register/doNetworkAddressRegister"
PING = "/ServiceInstancePing/doPing"


def services(*names: str) -> bytes:
    told = [v2_register.Service(serviceName=name) for name in names]
    return v2_register.Services(services=told).SerializeToString()


def service_ids(answer: bytes) -> dict[str, int]:
    mapping = v2_register.ServiceRegisterMapping.FromString(answer)
    return {one.key: one.value for one in mapping.services}


def call(channel: grpc.Channel, path: str, request: bytes, timeout_s: float = 30) -> bytes:
    answer: bytes = channel.unary_unary(path)(request, timeout=timeout_s)
    return answer


def status(attempt: Callable[[], object]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as raised:
        attempt()
    code: grpc.StatusCode = raised.value.code()
    return code


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A receiver behind which nothing is ever stored, and which hardly holds anything back."""
    with rig(tmp_path_factory.mktemp("idle"), hold_back_s=0.05) as each:
        yield each


def test_a_name_gets_its_id_within_one_call(tmp_path: Path) -> None:
    with rig(tmp_path, hold_back_s=20, every_s=0.1) as each:
        with grpc.insecure_channel(each.address) as channel:
            assert service_ids(call(channel, SERVICES, services("shop"))) == {"shop": 2}
        assert [kind for kind, _ in each.received()] == [Kind.INVENTORY]


def test_all_three_steps_of_an_address_are_done_within_one_call(tmp_path: Path) -> None:
    request = v2_register.NetAddresses(addresses=["db:3306"]).SerializeToString()
    with (
        rig(tmp_path, hold_back_s=20, every_s=0.1) as each,
        grpc.insecure_channel(each.address) as channel,
    ):
        answer = v2_register.NetAddressMapping.FromString(call(channel, ADDRESSES, request))
        assert [(one.key, one.value) for one in answer.addressIds] == [("db:3306", 2)]
        assert len(each.received()) == 3


def test_an_answer_is_held_back_and_then_given_without_the_id(idle: Rig) -> None:
    with grpc.insecure_channel(idle.address) as channel:
        assert call(channel, SERVICES, services("never")) == b""
        assert call(channel, SERVICES, services("never")) == b""
    assert [one.name for one in idle.kept()].count("never") == 1


def test_holding_back_leaves_the_caller_time_to_hear_the_answer(tmp_path: Path) -> None:
    with rig(tmp_path, hold_back_s=20) as each, grpc.insecure_channel(each.address) as channel:
        assert call(channel, SERVICES, services("never"), timeout_s=3) == b""


def test_an_unknown_instance_is_told_to_register_anew(idle: Rig) -> None:
    request = v2_register.ServiceInstancePingPkg(serviceInstanceId=9).SerializeToString()
    with grpc.insecure_channel(idle.address) as channel:
        answer = v2_register.Commands.FromString(call(channel, PING, request))
    assert [one.command for one in answer.commands] == ["ServiceMetadataReset"]


def test_bytes_that_are_no_request_are_invalid_and_the_connection_lives(idle: Rig) -> None:
    with grpc.insecure_channel(idle.address) as channel:
        bad = status(lambda: call(channel, SERVICES, b"\x0a\xff\xff"))
        assert bad is grpc.StatusCode.INVALID_ARGUMENT
        assert call(channel, SERVICES, services("never")) == b""


def test_a_question_that_is_too_large_is_refused(idle: Rig) -> None:
    with grpc.insecure_channel(idle.address) as channel:
        large = status(lambda: call(channel, SERVICES, bytes((1 << 20) + 1)))
        assert large is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_questions_before_storage_is_there_are_to_be_asked_again(tmp_path: Path) -> None:
    each = Rig(tmp_path, hold_back_s=1)
    each.supervisor.start()
    with grpc.insecure_channel(each.address) as channel:
        early = status(lambda: call(channel, SERVICES, services("shop")))
        assert early is grpc.StatusCode.UNAVAILABLE
    each.supervisor.stop()


def test_every_call_of_an_agent_is_served_and_what_has_a_kind_is_kept(tmp_path: Path) -> None:
    kinds: Counter[int] = Counter()
    with (
        rig(tmp_path, hold_back_s=0) as each,
        grpc.insecure_channel(each.address) as channel,
    ):
        for rpc in RPCS:
            if rpc.handling is Handling.REFUSE:
                continue
            kinds[rpc.kind] += 1
            if rpc.streaming is Streaming.UNARY:
                assert isinstance(call(channel, rpc.path, b""), bytes)
            elif rpc.streaming is Streaming.CLIENT_STREAM:
                assert channel.stream_unary(rpc.path)(iter([b""]), timeout=30) == b""
            else:
                answers = channel.stream_stream(rpc.path)(iter([b""]), timeout=30)
                assert list(answers) == [b""]
        refused = "/RemoteService/syncStatus"
        assert status(lambda: call(channel, refused, b"")) is grpc.StatusCode.UNIMPLEMENTED
        del kinds[Kind.NONE], kinds[Kind.V2_INSTANCE_PING]
        # An empty collection of segments has no element.
        kinds[Kind.SEGMENT] -= 2
        assert Counter(kind for kind, _ in each.received()) == kinds


def test_an_upload_is_told_to_go_on_and_each_piece_says_whose_it_is(idle: Rig) -> None:
    first, piece = b"\x0a\x03abc", b"\x1a\x05bytes"
    path = "/skywalking.v10.AsyncProfilerTask/collect"
    go_on = threading.Event()

    def pieces() -> Any:
        yield first
        assert go_on.wait(30), "the server said nothing of the first message"
        yield piece
        yield piece

    with grpc.insecure_channel(idle.address) as channel:
        answers = channel.stream_stream(path)(pieces(), timeout=30)
        assert next(answers) == b""
        go_on.set()
        assert list(answers) == []
    kept = [payload for kind, payload in idle.received() if kind == Kind.ASYNC_PROFILE]
    assert kept == [first, first + piece, first + piece]


class Client:
    """An agent that registers service after service, asking until each has its id."""

    def __init__(self, address: str, names: list[str]) -> None:
        self._address = address
        self._names = names
        self.ids: dict[str, int] = {}
        self.calls = 0

    def run(self) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(self._address, options) as channel:
            for name in self._names:
                while name not in self.ids:
                    self.calls += 1
                    try:
                        self.ids.update(service_ids(call(channel, SERVICES, services(name), 10)))
                    except grpc.RpcError:
                        time.sleep(0.05)


def test_200_clients_at_once_each_get_the_ids_of_their_names(tmp_path: Path) -> None:
    """Names of their own, and names that all of them have."""
    with rig(tmp_path, every_s=0.5) as each:
        clients = [
            Client(each.address, ["shared", f"own-{number}", f"pair-{number // 2}"])
            for number in range(200)
        ]
        with ThreadPoolExecutor(200) as pool:
            for done in [pool.submit(client.run) for client in clients]:
                done.result(timeout=120)
        ids: dict[str, int] = {}
        for client in clients:
            for name, number in client.ids.items():
                assert ids.setdefault(name, number) == number
        assert sorted(ids.values()) == list(range(FIRST_ID, FIRST_ID + 301))
        stored = {row: one.sequence for (_, row), one in each.shelf.rows.items()}
        assert stored == {f"{name}_0_0": number for name, number in ids.items()}
        # Nobody asked in a loop, and nobody's name was handed over again and again.
        assert sum(client.calls for client in clients) < 10 * 600
        assert len(each.received()) < 2 * 301


def test_a_receiver_that_is_killed_takes_its_questions_with_it_and_the_next_one_answers(
    tmp_path: Path,
) -> None:
    with rig(tmp_path, hold_back_s=20) as each:
        channel = grpc.insecure_channel(each.address)
        with ThreadPoolExecutor(8) as pool:
            asked = [
                pool.submit(status, lambda n=n: call(channel, SERVICES, services(f"s-{n}"), 60))
                for n in range(8)
            ]
            eventually(lambda: len(each.received()) == 8, 240, "all names are kept, and held back")
            first = each.receiver()
            first.kill()
            assert {one.result(timeout=60) for one in asked} == {grpc.StatusCode.UNAVAILABLE}
        channel.close()
        eventually(lambda: not first.is_running(), 240, "the first receiver is gone")
        each.shelf.store(*each.kept())
        each.answering.applied()
        client = Client(each.address, [f"s-{n}" for n in range(8)])
        client.run()
        assert sorted(client.ids.values()) == list(range(FIRST_ID, FIRST_ID + 8))

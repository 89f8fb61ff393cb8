"""SkyWalking 7's JSON: what is asked for it, what it is told, and what is kept."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from skyfarer.wire.messages import v2_register as v2
from skyfarer.wire.messages import v2_trace
from skyfarer.wire.metadata import Metadata
from skyfarer.wire.relay import Conversation
from skyfarer.wire.rpc import Kind, Rpc
from skyfarer.wire.status import Status, StatusError
from wire.http.posts import V2_SEGMENT
from wire.http.rig import Rig, run

SERVICES, INSTANCES, PING = (
    "/v2/service/register",
    "/v2/instance/register",
    "/v2/instance/heartbeat",
)
SHOP = {"services": [{"type": "normal", "serviceName": "shop"}, {"serviceName": "till"}]}


class Answering:
    """A `Relay` that remembers what it was asked, and answers or refuses it as it is told."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, bytes]] = []

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        self.asked.append((rpc.path, message))
        if isinstance(self.answer, StatusError):
            raise self.answer
        answer: bytes = self.answer.SerializeToString()
        return answer

    def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
        raise AssertionError("nothing here streams")


def test_a_registration_is_answered_with_every_name_and_0_for_one_without_an_id() -> None:
    known = v2.ServiceRegisterMapping(services=[v2.KeyIntValuePair(key="till", value=7)])
    relay = Answering(known)

    async def talk(rig: Rig) -> None:
        answer = await rig.post(SERVICES, json.dumps(SHOP))
        told = [{"key": "shop", "value": 0}, {"key": "till", "value": 7}]
        assert (answer.status, json.loads(answer.body)) == (200, told)
        ((path, message),) = relay.asked
        asked = v2.Services(services=[v2.Service(serviceName=one) for one in ("shop", "till")])
        assert (path, v2.Services.FromString(message)) == ("/Register/doServiceRegister", asked)
        assert not rig.kept

    run(Rig(relay=relay), talk)


def test_an_instance_is_known_by_its_uuid() -> None:
    known = v2.KeyIntValuePair(key="NAME:one", value=3)
    relay = Answering(v2.ServiceInstanceRegisterMapping(serviceInstances=[known]))
    instance = {"serviceId": 2, "instanceUUID": "NAME:one", "time": 1582428603392}

    async def talk(rig: Rig) -> None:
        answer = await rig.post(INSTANCES, json.dumps({"instances": [instance]}))
        assert json.loads(answer.body) == [{"key": "NAME:one", "value": 3}]
        assert relay.asked[0][0] == "/Register/doServiceInstanceRegister"

    run(Rig(relay=relay), talk)


def test_a_sign_of_life_is_answered_by_commands_if_there_are_any() -> None:
    relay = Answering(v2.Commands())
    reset = v2.Command(
        command="ServiceMetadataReset", args=[v2.KeyStringValuePair(key="SerialNumber", value="s")]
    )

    async def talk(rig: Rig) -> None:
        body = json.dumps({"serviceInstanceId": 20, "time": 5, "serviceInstanceUUID": "u"})
        assert (await rig.post(PING, body)).body == b"{}\n"
        relay.answer = v2.Commands(commands=[reset])
        told = json.loads((await rig.post(PING, body)).body)
        arguments = [{"key": "SerialNumber", "value": "s"}]
        assert told == {"commands": [{"command": "ServiceMetadataReset", "args": arguments}]}
        ping = v2.ServiceInstancePingPkg.FromString(relay.asked[0][1])
        assert (ping.serviceInstanceId, ping.serviceInstanceUUID) == (20, "u")

    run(Rig(relay=relay), talk)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.UNAVAILABLE, 503),
        (Status.DEADLINE_EXCEEDED, 503),
        (Status.INVALID_ARGUMENT, 400),
        (Status.INTERNAL, 500),
    ],
)
def test_what_is_not_answered_is_told_as_an_error(status: Status, code: int) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(SERVICES, json.dumps(SHOP))
        assert (answer.status, json.loads(answer.body)) == (code, {"error": "why not"})
        assert ("retry-after" in answer.headers) is (code == 503)

    run(Rig(relay=Answering(StatusError(status, "why not"))), talk)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SERVICES, "nonsense"),
        (SERVICES, "[]"),
        (SERVICES, '{"services": [5]}'),
        (INSTANCES, '{"instances": "all"}'),
        (PING, '{"serviceInstanceId": "one"}'),
        ("/v2/segments", "5"),
        ("/v2/segments", '{"spans": 5}'),
        ("/v2/segments", '{"globalTraceIds": [{"idParts": [1]}]}'),
        ("/v2/segments", '{"globalTraceIds": 5, "serviceId": 2}'),
        ("/v2/segments", json.dumps([V2_SEGMENT, {}])),
    ],
)
def test_what_is_no_message_of_its_path_is_400_and_neither_asked_nor_kept(
    path: str, body: str
) -> None:
    relay = Answering(v2.Commands())

    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, body)
        assert answer.status == 400
        assert json.loads(answer.body)["error"]
        assert not rig.kept
        assert not relay.asked

    run(Rig(relay=relay), talk)


def test_segments_come_alone_or_as_an_array_flat_or_wrapped() -> None:
    ids = V2_SEGMENT["globalTraceIds"]
    flat = {key: value for key, value in V2_SEGMENT.items() if key != "globalTraceIds"}

    async def talk(rig: Rig) -> None:
        assert (await rig.post("/v2/segments", json.dumps(V2_SEGMENT))).status == 200
        ((_, payload),) = rig.kept
        encoded = v2_trace.UpstreamSegment.FromString(payload).segment
        wrapped = {"globalTraceIds": ids, "segment": flat}
        packed = {"globalTraceIds": ids, "segment": base64.b64encode(encoded).decode()}
        assert (await rig.post("/v2/segments", json.dumps([wrapped, packed]))).status == 200
        assert rig.kept == [(Kind.V2_SEGMENT, payload)] * 3

    run(Rig(), talk)


def test_where_nobody_answers_a_question_is_503() -> None:
    async def talk(rig: Rig) -> None:
        assert (await rig.post(SERVICES, json.dumps(SHOP))).status == 503

    run(Rig(), talk)

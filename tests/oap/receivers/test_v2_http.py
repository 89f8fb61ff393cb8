"""An agent of SkyWalking 7 that speaks JSON, against a real receiver: registered, alive, traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from oap.receivers.receiving import Rig, rig
from skyfarer.testing.programs import eventually
from skyfarer.wire.messages import v2_trace
from skyfarer.wire.rpc import Kind
from wire.http.posts import V2_SEGMENT

WAIT_S = 120.0


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with rig(tmp_path_factory.mktemp("receiver"), hold_back_s=0, every_s=0.05) as running:
        yield running


@pytest.fixture(scope="module")
def http(receiver: Rig) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=receiver.http_url, trust_env=False, timeout=WAIT_S) as client:
        yield client


def settled(http: httpx.Client, path: str, body: dict[str, Any]) -> int:
    """The id of the one name in it; 0 is answered until it has one."""
    values: list[int] = []

    def told() -> bool:
        answer = http.post(path, json=body)
        assert answer.status_code == 200
        (pair,) = answer.json()
        values.append(pair["value"])
        return values[-1] != 0

    eventually(told, WAIT_S, f"{path} to give an id")
    assert not any(values[:-1])
    return values[-1]


def test_names_get_ids_and_segments_of_them_are_kept(receiver: Rig, http: httpx.Client) -> None:
    service = settled(http, "/v2/service/register", {"services": [{"serviceName": "nginx"}]})
    instance = {"serviceId": service, "instanceUUID": "NAME:nginx-1", "time": 1582428603392}
    instance_id = settled(http, "/v2/instance/register", {"instances": [instance]})
    assert (service, instance_id) == (2, 2)

    ping = {"serviceInstanceId": instance_id, "time": 1582428603392}
    assert http.post("/v2/instance/heartbeat", json=ping).json() == {}
    stranger = http.post("/v2/instance/heartbeat", json={**ping, "serviceInstanceId": 999})
    assert stranger.json()["commands"][0]["command"] == "ServiceMetadataReset"

    answer = http.post("/v2/segments", json={**V2_SEGMENT, "serviceInstanceId": instance_id})
    assert (answer.status_code, answer.json()) == (200, {})
    kind, payload = receiver.received()[-1]
    segment = v2_trace.SegmentObject.FromString(
        v2_trace.UpstreamSegment.FromString(payload).segment
    )
    assert (kind, segment.serviceInstanceId) == (Kind.V2_SEGMENT, instance_id)

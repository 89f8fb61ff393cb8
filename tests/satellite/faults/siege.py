"""A satellite under attack, with an honest agent beside the attackers."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from satellite.faults.agents import Agent, reporting
from satellite.faults.proof import QUICK, prove
from satellite.faults.recording import RecordingUpstream
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

WAIT_S = 120.0
HONEST_RATE = 200


class Siege:
    def __init__(
        self, satellite: SatelliteProgram, upstream: RecordingUpstream, honest: Agent
    ) -> None:
        self.satellite = satellite
        self.upstream = upstream
        self.honest = honest

    def expect(self, payload: bytes) -> None:
        """It was acknowledged, by whomever it was sent, and so has to arrive."""
        self.honest.sent.add(payload)
        self.honest.acknowledged.add(payload)


@contextmanager
def besieged(
    directory: Path,
    growth_bytes_max: int,
    config: Path | None = None,
    **environ: str,
) -> Iterator[Siege]:
    """The block is the attack. During it and after it the honest agent is served as before; the
    highest the satellite's memory ever was is bounded; and the books are exact."""
    with (
        RecordingUpstream() as upstream,
        SatelliteProgram(directory, upstream.address, config, **QUICK, **environ) as satellite,
    ):
        honest = Agent(satellite.address, "honest", HONEST_RATE)
        siege = Siege(satellite, upstream, honest)
        with reporting(honest):
            await_served(honest)
            before = satellite.memory_bytes()
            served = len(honest.acknowledged)
            yield siege
            assert len(honest.acknowledged) > served, "nobody else was served during the attack"
            await_served(honest)
        growth = satellite.memory_bytes("VmHWM") - before
        assert not honest.failures, honest.failures
        assert growth < growth_bytes_max, f"memory grew by {growth / 1e6:.1f} MB"
        prove(satellite, upstream, [honest])


def await_served(agent: Agent) -> None:
    had = len(agent.acknowledged)
    eventually(lambda: len(agent.acknowledged) >= had + 40, WAIT_S, "an honest agent to be served")


def post(url: str, body: bytes, **headers: str) -> int:
    """The status, whatever it is."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return int(response.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def status_of(call: Callable[[], object]) -> grpc.StatusCode:
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK

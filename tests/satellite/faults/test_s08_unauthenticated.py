"""S8: the upstream's token changes; data is kept until ours is put right, without a restart."""

from __future__ import annotations

from pathlib import Path

import grpc

from satellite.faults.agents import Agent, reporting
from satellite.faults.proof import QUICK, prove
from satellite.faults.recording import Call, RecordingUpstream, Refusal
from skyfarer.satellite.config import DEFAULT_FILE
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

WAIT_S = 120.0
TOKEN_LINE = '      authentication: ${SATELLITE_GRPC_AUTHENTICATION:""}\n'


class Door:
    def __init__(self, token: str) -> None:
        self.token = token

    def __call__(self, call: Call) -> None:
        if call.metadata.get("authentication") != self.token:
            raise Refusal(grpc.StatusCode.UNAUTHENTICATED, "who are you?")


def with_token_file(directory: Path, token: Path) -> Path:
    shipped = DEFAULT_FILE.read_text()
    assert TOKEN_LINE in shipped
    file = directory / "satellite.yaml"
    file.write_text(shipped.replace(TOKEN_LINE, f"      authentication_file: {token}\n"))
    return file


def test_a_token_that_was_changed_upstream_loses_nothing_and_is_read_again(tmp_path: Path) -> None:
    token, door = tmp_path / "token", Door("old")
    token.write_text("old")
    token.chmod(0o600)
    config = with_token_file(tmp_path, token)
    with (
        RecordingUpstream(door) as upstream,
        SatelliteProgram(tmp_path, upstream.address, config, **QUICK) as satellite,
    ):
        agent = Agent(satellite.address, "agent", 200)
        with reporting(agent):
            eventually(lambda: bool(upstream.calls), WAIT_S, "a delivery")
            door.token = "new"
            eventually(lambda: satellite.metric("sender_access_denied") == 1, WAIT_S, "an alarm")
            had = len(upstream.calls)
            token.write_text("new")
            eventually(lambda: len(upstream.calls) > had, WAIT_S, "a delivery with the new token")
        prove(satellite, upstream, [agent])
        assert upstream.refused, "no call was refused"
        assert satellite.metric("sender_access_denied") == 0
        assert not agent.failures

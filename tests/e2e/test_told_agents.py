"""What is written by a command reaches an agent that asks, through receiver, pipe and storage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from skyfarer.testing.programs import Oap, eventually
from skyfarer.wire.messages import Commands, configuration, profile

pytestmark = pytest.mark.e2e


def command(oap: Oap, *arguments: str) -> None:
    done = [sys.executable, "-m", "skyfarer.cli", "oap", *arguments, "--data-dir", str(oap.data)]
    subprocess.run(done, timeout=300, check=True)


def told(oap: Oap, path: str, request: bytes) -> list[dict[str, str]]:
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        answer = Commands.FromString(channel.unary_unary(path)(request, timeout=120))
    return [{one.key: one.value for one in each.args} for each in answer.commands]


def test_settings_and_profile_tasks_reach_the_agents_of_their_service(
    oap: Oap, tmp_path: Path
) -> None:
    ask = configuration.ConfigurationSyncRequest(service="told-shop").SerializeToString()
    fetch = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"
    assert told(oap, fetch, ask) == []
    file = tmp_path / "agents.yaml"
    file.write_text("configurations: {told-shop: {trace.sample_rate: 7}}")
    command(oap, "settings", "apply", str(file))
    command(oap, "profile", "create", "--service", "told-shop", "--endpoint", "/pay")
    eventually(lambda: told(oap, fetch, ask) != [], 240, "the settings are told")
    (settings,) = told(oap, fetch, ask)
    assert settings["trace.sample_rate"] == "7"
    query = profile.ProfileTaskCommandQuery(service="told-shop", serviceInstance="one")
    path = "/skywalking.v3.ProfileTask/getProfileTaskCommands"
    (task,) = told(oap, path, query.SerializeToString())
    assert (task["EndpointName"], task["Duration"]) == ("/pay", "5")

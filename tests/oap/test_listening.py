"""A node takes its ports first: one that cannot be had ends the start with one sentence."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.oap.boot.config import SHIPPED
from skyfarer.oap.boot.listening import listen

PORTS = (
    "SW_CORE_GRPC_PORT",
    "SW_CORE_REST_PORT",
    "SW_TELEMETRY_PROMETHEUS_PORT",
    "SW_RECEIVER_GRPC_PORT",
    "SW_RECEIVER_SHARING_REST_PORT",
)


def refusal(host: str, port: int) -> str:
    with pytest.raises(PermanentError) as refused:
        listen(host, port, "queries", "SW_CORE_REST")
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(("mine", "other"), [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "0.0.0.0")])
def test_a_taken_port_is_told_with_its_address_and_the_variable_to_set(
    mine: str, other: str
) -> None:
    with socket.create_server((other, 0)) as taken:
        port = taken.getsockname()[1]

        assert refusal(mine, port) == (
            f"cannot listen on {mine}:{port} for queries: Address already in use;"
            " set SW_CORE_REST_PORT to another port"
        )


def test_an_address_that_is_not_this_machines_is_told_with_the_variable_of_the_host() -> None:
    assert refusal("192.0.2.1", 0) == (
        "cannot listen on 192.0.2.1:0 for queries: Cannot assign requested address;"
        " set SW_CORE_REST_HOST to another host"
    )


def test_what_was_taken_is_refused_to_everybody_else_though_nobody_accepts_yet() -> None:
    with listen("127.0.0.1", 0, "queries", "SW_CORE_REST") as mine:
        with pytest.raises(OSError, match="already in use"):
            socket.create_server(mine.getsockname())
        socket.create_connection(mine.getsockname(), timeout=10).close()


def test_what_is_accepted_sends_at_once_what_is_written() -> None:
    with (
        listen("127.0.0.1", 0, "queries", "SW_CORE_REST") as mine,
        socket.create_connection(mine.getsockname(), timeout=10),
    ):
        accepted, _ = mine.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_ipv6_address_may_be_listened_on() -> None:
    with listen("::1", 0, "queries", "SW_CORE_REST") as mine:
        assert mine.getsockname()[0] == "::1"


@pytest.mark.parametrize("variable", PORTS)
def test_a_start_with_a_taken_port_ends_with_the_sentence_before_anything_has_started(
    tmp_path: Path, variable: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "skyfarer.cli", "oap", "start"],
            env={
                **os.environ,
                **dict.fromkeys(PORTS, "0"),
                variable: str(port),
                "SKYFARER_DATA_DIR": str(tmp_path / "data"),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    *before, sentence = done.stderr.splitlines()
    assert done.returncode == 1
    assert f"cannot start: cannot listen on 127.0.0.1:{port} for " in sentence
    assert f": Address already in use; set {variable} to another port" in sentence
    assert not [line for line in before if "starting module=" in line]
    assert list((tmp_path / "data").iterdir()) == []
    assert done.stdout == ""


@pytest.mark.parametrize("variable", PORTS)
def test_the_variables_that_are_named_are_those_of_the_shipped_file(variable: str) -> None:
    text = SHIPPED.read_text()

    assert f"${{{variable}:" in text
    assert f"${{{variable.removesuffix('PORT')}HOST:" in text

"""How tests wait for programs and get their ports."""

from __future__ import annotations

import socket

import pytest

from skyfarer.testing.programs import PORTS_HELD_MAX, eventually, first_ephemeral_port, free_port


def test_whoever_was_kept_from_looking_until_the_time_was_over_looks_once_more() -> None:
    looks = iter([False, True])
    eventually(lambda: next(looks), 0.0, "the second look")


def test_what_never_holds_is_named_when_the_time_is_over() -> None:
    with pytest.raises(AssertionError, match="not within 0 s: a miracle"):
        eventually(lambda: False, 0.0, "a miracle")


def test_ports_are_told_apart_below_those_that_the_kernel_gives_away() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == len(ports)
    assert max(ports) < first_ephemeral_port()
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_a_port_is_nobody_elses_while_so_many_others_are_asked_for() -> None:
    port = free_port()
    assert port not in {free_port() for _ in range(PORTS_HELD_MAX - 1)}

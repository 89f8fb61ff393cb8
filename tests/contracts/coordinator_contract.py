"""What every coordinator promises, and what those do that share a registry with others.

A registry of these tests forgets a silent node after TIMEOUT_S. How long something takes is never
asked; WAIT_S is when it is given up.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from skyfarer.base.errors import PermanentError, SkyfarerError
from skyfarer.oap.core.cluster import Coordinator, Node
from skyfarer.testing.programs import eventually
from third_parties.servers import Server

TIMEOUT_S: Final = 4
WAIT_S: Final = 120.0
PROGRAM: Final = Path(__file__).parents[1] / "oap" / "cluster" / "member.py"

A, B, C = Node("10.0.0.1", 11800), Node("10.0.0.2", 11800), Node("10.0.0.10", 11800)

Join = Callable[[], Coordinator]


def sees(coordinator: Coordinator, *nodes: Node) -> None:
    """Comes to have these, each once, and itself among them."""

    def holds() -> bool:
        found = coordinator.nodes()
        return sorted(n.name for n in found) == sorted(n.name for n in nodes) and any(
            n.is_self for n in found
        )

    eventually(holds, WAIT_S, f"{[n.name for n in nodes]}, not {coordinator.nodes()}")


class Member:
    """A coordinator in a process of its own, which can be stopped and killed."""

    def __init__(self, kind: str, address: str, node: Node) -> None:
        settings = {"kind": kind, "address": address, "timeout_s": TIMEOUT_S}
        asked = json.dumps({**settings, "host": node.host, "port": node.port})
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "registered"

    def standing(self) -> dict[str, Any]:
        """`selves` are the nodes it takes for itself, `renewals` how often it registered anew."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def send(self, name: signal.Signals) -> None:
        self._process.send_signal(name)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


class CoordinatorContract:
    """`join` makes one that is not started."""

    def test_nobody_is_there_until_somebody_registers(self, join: Join) -> None:
        coordinator = join()
        coordinator.start()
        assert coordinator.nodes() == []
        coordinator.register(A)
        assert coordinator.nodes() == [A]
        assert [node.is_self for node in coordinator.nodes()] == [True]

    def test_a_node_registers_once_however_often_it_says_so(self, join: Join) -> None:
        coordinator = join()
        coordinator.start()
        coordinator.register(A)
        coordinator.register(A)
        with pytest.raises(PermanentError, match=r"10\.0\.0\.1_11800 is registered"):
            coordinator.register(B)
        assert coordinator.nodes() == [A]

    def test_whoever_watches_is_told_the_whole_list(self, join: Join) -> None:
        coordinator, told = join(), []
        coordinator.watch(told.append)
        coordinator.start()
        coordinator.register(A)
        eventually(lambda: told[-1:] == [[A]], WAIT_S, "told of itself")
        assert told[-1][0].is_self

    def test_it_is_safe_to_stop_twice_and_unstarted(self, join: Join) -> None:
        unstarted, coordinator = join(), join()
        unstarted.stop(1)
        coordinator.start()
        coordinator.register(A)
        coordinator.stop(10)
        coordinator.stop(10)
        assert not any(node.is_self for node in coordinator.nodes())

    def test_it_stands_well(self, join: Join) -> None:
        coordinator = join()
        coordinator.start()
        coordinator.register(A)
        assert coordinator.standing().reachable
        assert coordinator.standing().trouble == ""


class SharedCoordinatorContract(CoordinatorContract):
    """Of a registry: a `server` that is running and empty, at whose address `member` starts others;
    `forget` deletes all registrations, as somebody with a client of his own might."""

    def test_two_see_each_other_each_as_itself(self, join: Join) -> None:
        first, second, onlooker = join(), join(), join()
        for one in (first, second, onlooker):
            one.start()
        first.register(A)
        second.register(C)
        sees(first, A, C)
        sees(second, A, C)
        assert [node.name for node in first.nodes() if node.is_self] == [A.name]
        assert [node.name for node in second.nodes() if node.is_self] == [C.name]
        eventually(lambda: set(onlooker.nodes()) == {A, C}, WAIT_S, "the onlooker sees both")
        assert not any(node.is_self for node in onlooker.nodes()), "it never registered"

    def test_one_that_leaves_is_gone_for_the_other(self, join: Join) -> None:
        first, second, told = join(), join(), []
        first.watch(lambda nodes: told.append({node.name for node in nodes}))
        for one, node in ((first, A), (second, B)):
            one.start()
            one.register(node)
        sees(first, A, B)
        second.stop(10)
        sees(first, A)
        eventually(lambda: told[-1:] == [{A.name}], WAIT_S, "the watcher is told")
        assert {A.name, B.name} in told

    def test_one_that_is_killed_is_gone_for_the_other(
        self, join: Join, member: Callable[[Node], Member]
    ) -> None:
        first, second = join(), member(B)
        first.start()
        first.register(A)
        sees(first, A, B)
        second.end()
        sees(first, A)

    def test_c04_one_that_was_stopped_for_too_long_knows_and_comes_back(
        self, join: Join, member: Callable[[Node], Member]
    ) -> None:
        first, second = join(), member(B)
        first.start()
        first.register(A)
        sees(first, A, B)
        assert second.standing()["selves"] == [B.name]

        second.send(signal.SIGSTOP)
        sees(first, A)
        second.send(signal.SIGCONT)

        resumed = second.standing()
        assert resumed["selves"] == [] or resumed["renewals"], "it took itself for registered"
        sees(first, A, B)
        eventually(lambda: second.standing()["selves"] == [B.name], WAIT_S, "it knows")
        assert second.standing()["renewals"] >= 1

    def test_c03_a_registry_that_is_restarted_has_them_all_again(
        self, join: Join, server: Server
    ) -> None:
        first, second = self._two(join)
        server.stop()
        eventually(lambda: not first.standing().reachable, WAIT_S, "it is missed")
        assert server.address in first.standing().trouble
        server.start()
        sees(first, A, B)
        sees(second, A, B)

    def test_c03_a_registry_that_was_emptied_is_told_anew(self, join: Join, server: Server) -> None:
        first, second = self._two(join)
        server.kill()
        server.wipe()
        server.start()
        for one in (first, second):
            eventually(lambda one=one: one.standing().renewals > 0, WAIT_S, "it is told anew")
            sees(one, A, B)

    def test_a_registration_that_somebody_deletes_is_made_again(
        self, join: Join, forget: Callable[[], None]
    ) -> None:
        first, second = self._two(join)
        forget()
        for one in (first, second):
            eventually(lambda one=one: one.standing().renewals > 0, WAIT_S, "it is made again")
            sees(one, A, B)

    def test_a_registry_that_falls_silent_is_not_believed_for_ever(
        self, join: Join, server: Server
    ) -> None:
        first, told = join(), []
        first.watch(told.append)
        first.start()
        first.register(A)
        server.pause()
        try:
            eventually(lambda: first.nodes() == [], WAIT_S, "it no longer takes itself for known")
            eventually(lambda: told[-1:] == [[]], WAIT_S, "and says so")
        finally:
            server.resume()
        sees(first, A)

    def test_without_a_registry_it_does_not_start(self, join: Join, server: Server) -> None:
        server.stop()
        with pytest.raises(SkyfarerError) as refused:
            join().start()
        assert server.address in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_one_that_the_registry_leaves_alone_says_so_when_it_registers(
        self, join: Join, server: Server
    ) -> None:
        first = join()
        first.start()
        server.stop()
        with pytest.raises(SkyfarerError, match=r"10\.0\.0\.1_11800 could not be registered"):
            first.register(A)
        assert first.nodes() == []

    def _two(self, join: Join) -> tuple[Coordinator, Coordinator]:
        first, second = join(), join()
        for one, node in ((first, A), (second, B)):
            one.start()
            one.register(node)
        sees(first, A, B)
        sees(second, A, B)
        return first, second

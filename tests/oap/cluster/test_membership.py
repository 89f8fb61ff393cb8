"""What holds for any registry, shown with one in memory whose failures and pauses are inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from contracts.coordinator_contract import WAIT_S, A, B
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.cluster.membership import NODES_MAX, Found, Membership, RetrySettings
from skyfarer.oap.core.cluster import Node, ailment
from skyfarer.testing.clock import HandClock
from skyfarer.testing.programs import eventually


class Shelf:
    """A registry that does as it is told."""

    kind, where, timeout_s = "shelf", "the shelf", 0.5

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.others: list[Node] = []
        self.failure: Exception | None = None
        self.pause_s = 0.0
        self.rounds = 0
        self.changed: Callable[[], None] = lambda: None
        self.closed = False

    def open(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def round(self, own: Node | None) -> Found:
        self.rounds += 1
        self.clock.seconds += self.pause_s
        if self.failure is not None:
            raise self.failure
        return Found((*self.others, *([] if own is None else [own])))

    def close(self, timeout_s: float) -> None:
        self.closed = True


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(HandClock(1))


@pytest.fixture
def one(shelf: Shelf) -> Iterator[Membership]:
    made = Membership(shelf, RetrySettings(0.01, 2), shelf.clock)
    yield made
    made.stop(10)


def test_a_round_that_took_longer_than_the_timeout_proves_nothing(
    one: Membership, shelf: Shelf
) -> None:
    """The registry answered before the pause, and may have forgotten us during it."""
    one.start()
    shelf.pause_s = shelf.timeout_s
    with pytest.raises(RetryableError, match="could not be registered"):
        one.register(A)
    assert one.nodes() == []
    shelf.pause_s = 0.0
    eventually(lambda: one.nodes() == [A], WAIT_S, "the next round proves it")


def test_another_registration_of_the_own_address_is_not_taken_for_the_own(
    one: Membership, shelf: Shelf
) -> None:
    """Of an earlier life, say, that the registry has not forgotten yet."""
    shelf.others = [Node(A.host, A.port), B]
    one.start()
    assert set(one.nodes()) == {A, B}
    shelf.failure = RetryableError("the shelf fell")
    with pytest.raises(RetryableError, match="the shelf fell"):
        one.register(A)
    assert one.nodes() == [B]
    shelf.failure = None
    eventually(lambda: sorted(n.is_self for n in one.nodes()) == [False, True], WAIT_S, "both")


def test_one_that_stays_under_the_own_address_is_another_node(
    one: Membership, shelf: Shelf
) -> None:
    told: list[list[Node]] = []
    shelf.others = [A]
    one.watch(told.append)
    one.start()
    one.register(A)
    assert one.nodes() == [A], "of an earlier life"
    shelf.clock.seconds += 3 * shelf.timeout_s
    eventually(lambda: len(one.nodes()) == 2, WAIT_S, "it is still there")
    assert sorted((node.name, node.is_self) for node in one.nodes()) == [
        (A.name, False),
        (A.name, True),
    ]
    eventually(lambda: len(told[-1]) == 2, WAIT_S, "told of it")
    assert ailment(told[-1], registers=True).startswith("10.0.0.1_11800 is registered by another")
    shelf.others = []
    eventually(lambda: one.nodes() == [A], WAIT_S, "it is gone")


@pytest.mark.parametrize("failure", [RetryableError("away"), PermanentError("no"), OSError("what")])
def test_no_failure_ends_the_rounds(failure: Exception, one: Membership, shelf: Shelf) -> None:
    one.start()
    one.register(A)
    shelf.failure = failure
    shelf.changed()
    eventually(lambda: not one.standing().reachable, WAIT_S, "it has failed")
    assert str(failure) in one.standing().trouble
    shelf.failure = None
    eventually(lambda: one.standing().reachable, WAIT_S, "it is asked again")
    assert one.nodes() == [A]


def test_a_refusal_is_told_at_once_and_a_start_does_not_insist(
    one: Membership, shelf: Shelf
) -> None:
    shelf.failure = PermanentError("not you")
    with pytest.raises(PermanentError, match="not you"):
        one.start()
    assert (shelf.rounds, shelf.closed) == (1, True)


def test_a_start_insists_for_as_often_as_it_is_told(one: Membership, shelf: Shelf) -> None:
    shelf.failure = RetryableError("not now")
    with pytest.raises(RetryableError, match="not now"):
        one.start()
    assert (shelf.rounds, shelf.closed) == (2, True)


def test_a_watcher_that_fails_keeps_no_other_from_being_told(one: Membership, shelf: Shelf) -> None:
    told: list[list[Node]] = []

    def fail(_nodes: list[Node]) -> None:
        raise ValueError("of the watcher")

    one.watch(fail)
    one.watch(told.append)
    one.start()
    shelf.others = [B]
    shelf.changed()
    eventually(lambda: told[-1:] == [[B]], WAIT_S, "the other is told")
    shelf.others = []
    shelf.changed()
    eventually(lambda: told[-1:] == [[]], WAIT_S, "and again")


def test_whoever_is_told_is_told_of_changes_alone(one: Membership, shelf: Shelf) -> None:
    told: list[list[Node]] = []
    one.watch(told.append)
    shelf.others = [A, B]
    one.start()
    eventually(lambda: len(told) == 1, WAIT_S, "told of both")
    before = shelf.rounds
    shelf.others = [B, A]
    shelf.changed()
    eventually(lambda: shelf.rounds >= before + 2, WAIT_S, "another order was heard")
    assert len(told) == 1


def test_a_registry_full_of_strangers_is_not_read_to_its_end(one: Membership, shelf: Shelf) -> None:
    shelf.others = [Node("10.0.0.1", 1 + number) for number in range(NODES_MAX + 5)]
    one.start()
    assert len(one.nodes()) == NODES_MAX

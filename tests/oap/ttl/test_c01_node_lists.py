"""The bug that kept data for four years, reproduced and cured.

The same scenes are played by our nodes and by two controls: the original's, which takes the list
as it comes, and the one that sorts it and trusts it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import TypeAlias

import pytest

from contracts.expiry_contract import OLD, LeaseContract
from oap.ttl.cluster_of import Cluster, Original, Ours, Sorted, Told
from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.cluster import Node, in_order
from skyfarer.oap.core.expiry import DayTable, Kept
from skyfarer.oap.ttl.turns import not_my_turn
from skyfarer.testing.day_tables import MemoryTables

SHUFFLES = 10_000
SCENES = 200
Made: TypeAlias = Callable[[str, Told, MemoryTables], Ours | Original]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.getLogger("skyfarer.oap.ttl").setLevel(logging.ERROR)
    yield
    logging.getLogger("skyfarer.oap.ttl").setLevel(logging.NOTSET)


def shuffles(made: Made, seed: int, count: int = SHUFFLES) -> Counter[str]:
    """How many of so many periods, in which each node has the whole list in another order, had no
    deleter, two of them, or another one than the period before."""
    random, wrong, periods = Random(seed), Counter[str](), 0
    while periods < count:
        cluster, last = Cluster(2 + periods // 25 % 8, made, random), None
        for _ in range(25):
            cluster.tell_all()
            deleters = cluster.period()
            wrong["none"] += not deleters
            wrong["two"] += len(deleters) > 1
            wrong["another"] += last not in (None, deleters)
            last, periods = deleters, periods + 1
    return +wrong


def broken(cluster: Cluster, number: int) -> list[Node]:
    """What a registry may say at its worst."""
    everyone, random = list(range(len(cluster.names))), cluster.random
    others = [n for n in everyone if n != number]
    return random.choice(
        [
            [],
            cluster.seen_by(number, others),
            cluster.seen_by(number, random.sample(others, random.randint(0, len(others)))),
            cluster.seen_by(number, [number, *random.sample(others, len(others) // 2)]),
            cluster.seen_by(number, everyone * 3),
            [Node("", 11800), *cluster.seen_by(number, everyone)],
            [Node("10.0.0.0", 11800), *cluster.seen_by(number, everyone)],
        ]
    )


def bad_lists(made: Made, seed: int) -> Counter[str]:
    """A minority of nodes is told nonsense, all the time: how many scenes had two deleters at once,
    or none until the last of the nodes should have stepped in."""
    random, wrong = Random(seed), Counter[str]()
    for scene in range(SCENES):
        cluster = Cluster(2 + scene % 8, made, random)
        size = len(cluster.names)
        cluster.tell_all()
        for number in random.sample(range(size), (size - 1) // 2):
            cluster.lists[number].listed = broken(cluster, number)
        found = [cluster.period() for _ in range(size + 2)]
        wrong["two"] += any(len(deleters) > 1 for deleters in found)
        wrong["none"] += not any(found)
    return +wrong


def pauses(made: Made, seed: int) -> Counter[str]:
    """Two nodes are paused and resumed, with the list that they had. While a majority is awake
    there is a deleter within two periods, and never two."""
    random, wrong = Random(seed), Counter[str]()
    for scene in range(SCENES):
        cluster = Cluster(5 + scene % 5, made, random)
        cluster.tell_all()
        found = [cluster.period()]
        cluster.paused = set(random.sample(range(len(cluster.names)), 2))
        found.append(cluster.period())  # the others still list them
        cluster.tell_all()
        found.append(cluster.period())
        wrong["none"] += not (found[0] and found[2])
        cluster.paused = set()
        found += [cluster.period()]  # resumed, and told nothing yet
        cluster.tell_all()
        found += [cluster.period()]
        wrong["none"] += not found[-1]
        wrong["two"] += sum(len(deleters) > 1 for deleters in found)
    return +wrong


def test_c01_of_10000_shuffles_each_has_one_deleter_and_always_the_same() -> None:
    assert shuffles(Ours, 1) == Counter()


def test_c01_the_originals_rule_fails_the_same_test() -> None:
    wrong = shuffles(Original, 1)
    assert wrong["none"] > SHUFFLES // 10
    assert wrong["two"] > SHUFFLES // 10
    assert shuffles(Sorted, 1, 1_000) == Counter()


def test_c02_lists_that_are_empty_partial_repeated_or_stale_make_neither_two_nor_none() -> None:
    assert bad_lists(Ours, 2) == Counter()


@pytest.mark.parametrize("made", [Original, Sorted])
def test_c02_neither_control_stands_bad_lists(made: Made) -> None:
    wrong = bad_lists(made, 2)
    assert wrong["none"] > 0
    assert wrong["two"] > SCENES // 10


def test_c04_nodes_that_are_paused_and_resumed_make_neither_two_nor_none() -> None:
    assert pauses(Ours, 3) == Counter()


@pytest.mark.parametrize("made", [Original, Sorted])
def test_c04_neither_control_stands_pauses(made: Made) -> None:
    assert pauses(made, 3)["two"] > 0


def test_c02_nobody_deletes_when_every_list_is_empty() -> None:
    cluster = Cluster(5, Ours, Random(4))
    assert [cluster.period() for _ in range(20)] == [set()] * 20
    assert cluster.tables.dropped == []
    control = Cluster(5, Original, Random(4))
    assert len(control.period()) == 5


def test_c02_nodes_that_all_call_themselves_the_same_are_told_apart_by_the_lease() -> None:
    cluster = Cluster(4, Ours, Random(5))
    for told in cluster.lists:
        told.listed = [Node("0.0.0.0", 11800, is_self=True)]
    assert [len(cluster.period()) for _ in range(50)] == [1] * 50


class TestMemoryTables(LeaseContract):
    """What the nodes above delete is fenced as a storage is."""

    @pytest.fixture
    def tables(self) -> MemoryTables:
        return MemoryTables(SystemClock(), [DayTable("segment", OLD, Kept.RECORD)])


def test_a_node_without_a_host_is_none_and_a_repeated_one_is_one() -> None:
    own, other = Node("b", 2, is_self=True), Node("a", 2)
    found = in_order([Node("", 1), Node("b", 2), own, other, other])
    assert found == [other, own]
    assert found[1].is_self


@pytest.mark.parametrize(
    ("nodes", "overdue", "why"),
    [
        ([], 99, "the list of nodes is empty"),
        ([Node("", 1, is_self=True)], 99, "the list of nodes is empty"),
        ([Node("a", 1)], 99, "this node is not among the 1 that are listed"),
        ([Node("10.0.0.2", 1, is_self=True), Node("10.0.0.10", 1)], 1.9, "first node is 10.0.0.10"),
        ([Node("10.0.0.2", 1, is_self=True), Node("10.0.0.10", 1)], 2, ""),
        ([Node("a", 1), Node("b", 1), Node("c", 1, is_self=True)], 2.9, "number 3 of the list"),
        ([Node("a", 1), Node("b", 1), Node("c", 1, is_self=True)], 3, ""),
        ([Node("b", 1), Node("a", 1, is_self=True)], 0, ""),
    ],
)
def test_whose_turn_it_is_is_said_in_a_sentence(
    nodes: list[Node], overdue: float, why: str
) -> None:
    said = not_my_turn(nodes, overdue)
    assert why in said
    assert bool(why) == bool(said)

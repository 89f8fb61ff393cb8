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
SCENES = 5_000
"""In each of which two nodes, on average, have a bad list."""
PAUSES = 300
CHANGES_OVER_PERIODS = 1
"""That may be without a deleter where the one there was, or should have been, has fallen out."""
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


def periods(cluster: Cluster, count: int, may_lack: int = 0) -> Counter[str]:
    """How many of so many periods had two deleters, or none, but for the first few; and alarms."""
    alarms, found = cluster.alarms, [cluster.period() for _ in range(count)]
    return Counter(
        two=sum(len(deleters) > 1 for deleters in found),
        none=sum(not deleters for deleters in found[may_lack:]),
        alarms=cluster.alarms - alarms,
    )


def bad_lists(made: Made, seed: int, scenes: int = SCENES) -> Counter[str]:
    """A minority of nodes is told nonsense, all the time."""
    random, wrong = Random(seed), Counter[str]()
    for scene in range(scenes):
        cluster = Cluster(2 + scene % 8, made, random)
        size = len(cluster.names)
        cluster.tell_all()
        for number in random.sample(range(size), (size - 1) // 2):
            cluster.lists[number].listed = broken(cluster, number)
        wrong += periods(cluster, 3, CHANGES_OVER_PERIODS)
    return +wrong


def pauses(made: Made, seed: int, scenes: int = PAUSES) -> Counter[str]:
    """Two nodes are paused and resumed, with the list that they had, while others, a minority with
    them, are told nonsense at first."""
    random, wrong = Random(seed), Counter[str]()
    for scene in range(scenes):
        cluster = Cluster(5 + scene % 5, made, random)
        size = len(cluster.names)
        first, second, *misled = random.sample(range(size), (size - 1) // 2)
        cluster.tell_all()
        for number in misled:
            cluster.lists[number].listed = broken(cluster, number)
        wrong += periods(cluster, 3, CHANGES_OVER_PERIODS)
        cluster.paused = {first, second}
        wrong += periods(cluster, 3, CHANGES_OVER_PERIODS)  # the others still list them
        cluster.tell_all()
        wrong += periods(cluster, 2)
        cluster.paused = set()
        wrong += periods(cluster, 2)  # resumed, and told nothing yet
        cluster.tell_all()
        wrong += periods(cluster, 2)
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
    wrong = bad_lists(made, 2, SCENES // 10)
    assert wrong["none"] > SCENES // 100
    assert wrong["two"] > SCENES // 100


def test_c02_where_the_first_four_of_nine_know_nobody_one_deletes_in_every_period() -> None:
    cluster = Cluster(9, Ours, Random(6))
    cluster.tell_all()
    for number in cluster.by_name[:4]:
        cluster.lists[number].listed = []
    assert cluster.period() == set()
    stepped_in = cluster.period()
    assert len(stepped_in) == 1
    assert [cluster.period() for _ in range(38)] == [stepped_in] * 38
    assert cluster.alarms == 0


def test_c02_the_first_node_is_the_only_one_again_once_it_has_deleted() -> None:
    cluster = Cluster(5, Ours, Random(7))
    cluster.tell_all()
    first = cluster.by_name[0]
    cluster.lists[first].listed = []
    (stepped_in,) = [cluster.period() for _ in range(3)][-1]
    cluster.tell_all()
    found = [cluster.period() for _ in range(20)]
    back = found.index({first})
    assert found == [{stepped_in}] * back + [{first}] * (20 - back)


def test_c04_nodes_that_are_paused_and_resumed_make_neither_two_nor_none() -> None:
    assert pauses(Ours, 3) == Counter()


@pytest.mark.parametrize("made", [Original, Sorted])
def test_c04_neither_control_stands_pauses(made: Made) -> None:
    wrong = pauses(made, 3, PAUSES // 3)
    assert wrong["none"] > 0
    assert wrong["two"] > 0


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
    ("nodes", "overdue", "had_lease", "why"),
    [
        ([], 99, True, "the list of nodes is empty"),
        ([Node("", 1, is_self=True)], 99, True, "the list of nodes is empty"),
        ([Node("a", 1)], 99, True, "this node is not among the 1 that are listed"),
        ([Node("10.2", 1, is_self=True), Node("10.10", 1)], 1.9, False, "first node is 10.10"),
        ([Node("10.2", 1, is_self=True), Node("10.10", 1)], 2, False, ""),
        ([Node("10.2", 1, is_self=True), Node("10.10", 1)], 0, True, ""),
        ([Node("a", 1), Node("b", 1), Node("c", 1, is_self=True)], 1.9, False, "number 3 of the"),
        ([Node("a", 1), Node("b", 1), Node("c", 1, is_self=True)], 2, False, ""),
        ([Node("b", 1), Node("a", 1, is_self=True)], 0, False, ""),
    ],
)
def test_whose_turn_it_is_is_said_in_a_sentence(
    nodes: list[Node], overdue: float, had_lease: bool, why: str
) -> None:
    said = not_my_turn(nodes, overdue, had_lease)
    assert why in said
    assert bool(why) == bool(said)

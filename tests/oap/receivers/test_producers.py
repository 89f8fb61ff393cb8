"""What is known of producers: ranges against a plain set, bounds, and its bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skyfarer.oap.receivers.held import Held
from skyfarer.oap.receivers.producers import Bounds, Producers

pieces = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 6)), max_size=40)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(pieces)
def test_ranges_say_what_a_set_says(added: list[tuple[int, int]]) -> None:
    held, model = Held(), set[int]()
    for start, size in added:
        held.add(start, start + size)
        model.update(range(start, start + size))
        assert [held.has(number) for number in range(70)] == [n in model for n in range(70)]
    edges = [edge for pair in held.ranges() for edge in pair]
    assert edges == sorted(set(edges)), "ranges touch, overlap or are out of order"


def test_the_lowest_ranges_are_forgotten_and_it_is_known_up_to_where() -> None:
    held = Held()
    for start in (0, 10, 20, 30):
        held.add(start, start + 2)
    held.forget(2)
    assert held.ranges() == [(20, 22), (30, 32)]
    assert held.floor == 12
    held.forget(2)
    assert held.floor == 12


def test_numbers_that_come_one_after_the_other_take_one_range() -> None:
    producers = Producers()
    for first in range(0, 10_000, 100):
        producers.add("a", first, list(range(first, first + 100)))
    assert producers.known("a").ranges() == [(0, 10_000)]
    assert producers.known("a").settled == 9_900


def test_who_was_not_heard_of_for_longest_is_forgotten() -> None:
    producers = Producers(Bounds(producers_max=2))
    producers.add("a", 0, [0])
    producers.add("b", 0, [0])
    producers.add("a", 0, [1])
    producers.add("c", 0, [0])
    assert [len(producers.known(name)) for name in "abc"] == [1, 0, 1]
    assert producers.forgotten == 1
    assert len(producers) == 2


def test_ranges_are_bounded_for_one_producer_and_for_all_together() -> None:
    producers = Producers(Bounds(ranges_max=10, all_ranges_max=25))
    odd = list(range(1, 101, 2))
    for name in "abc":
        producers.add(name, 0, odd)
        assert len(producers.known(name)) == 10
        assert not producers.known(name).has(79) and producers.known(name).has(81)
    assert [len(producers.known(name)) for name in "abc"] == [0, 10, 10]


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.dictionaries(st.text("abcdef0123456789", min_size=1, max_size=64), pieces, max_size=5))
def test_what_is_known_survives_as_bytes(added: dict[str, list[tuple[int, int]]]) -> None:
    producers = Producers()
    for name, its in added.items():
        for start, size in its:
            producers.add(name, start, [tuple(range(start, start + size))])
    again = Producers.restored(producers.snapshot())
    assert again.snapshot() == producers.snapshot()
    for name in added:
        before, after = producers.known(name), again.known(name)
        assert (after.ranges(), after.settled, after.floor) == (
            before.ranges(),
            before.settled,
            before.floor,
        )
    again.add("new", 0, [1])
    assert len(again) == len(producers) + 1

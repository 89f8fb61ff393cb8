"""Where nodes stand: callers on the left, nothing jumps, and circles end."""

from __future__ import annotations

import random

from skyfarer.ui.map.layout import placed

SHOP = [("user", "gateway"), ("gateway", "order"), ("gateway", "stock"), ("order", "db")]


def columns(nodes, edges):
    return {name: int(column) for name, (column, _) in placed(nodes, edges).items()}


def names_of(edges):
    return sorted({end for edge in edges for end in edge})


def test_callers_stand_left_of_whom_they_call():
    found = columns(names_of(SHOP), SHOP)
    assert found == {"user": 0, "gateway": 1, "order": 2, "stock": 2, "db": 3}


def test_a_node_stands_right_of_its_farthest_caller():
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    assert columns(names_of(edges), edges) == {"a": 0, "b": 1, "c": 2}


def test_the_order_of_what_is_told_changes_nothing():
    nodes, edges = names_of(SHOP), list(SHOP)
    expected = placed(nodes, edges)
    for seed in range(20):
        shuffle = random.Random(seed).shuffle
        shuffle(nodes)
        shuffle(edges)
        assert placed(nodes, edges) == expected


def test_circles_and_calls_to_oneself_end():
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "c"), ("c", "d")]
    assert columns(names_of(edges), edges) == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert columns(["x"], [("x", "x")]) == {"x": 0}


def test_no_two_nodes_stand_in_one_place_in_any_map():
    for seed in range(200):
        drawn = random.Random(seed)
        nodes = [f"n{number}" for number in range(drawn.randint(1, 30))]
        edges = {(drawn.choice(nodes), drawn.choice(nodes)) for _ in range(drawn.randint(0, 60))}
        found = placed(nodes, edges)
        assert set(found) == set(nodes)
        assert len(set(found.values())) == len(nodes)


def test_a_call_to_a_node_that_is_not_drawn_is_left_out():
    assert columns(["a"], [("a", "gone"), ("gone", "a")]) == {"a": 0}


def test_in_a_column_a_node_stands_near_its_caller():
    edges = [("a", "z"), ("b", "y"), ("c", "x")]
    heights = {name: height for name, (_, height) in placed(names_of(edges), edges).items()}
    assert heights["z"] < heights["y"] < heights["x"]

from __future__ import annotations

import json
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import (
    OBSERVE_FAILURES,
    SERIES_OVERFLOW,
    Kind,
    Metric,
    Registry,
)
from telemetry.prometheus_text import parse

CALLS = Metric("calls_total", Kind.COUNTER, "Calls.", ("rpc", "status"))
PLAIN = Metric("plain_total", Kind.COUNTER, "Plain.")
LEVEL = Metric("level", Kind.GAUGE, "A level.")
DROPPED = Metric("dropped_total", Kind.COUNTER, "Dropped.", ("queue", "reason"))
NARROW = Metric("narrow_total", Kind.COUNTER, "Narrow.", ("peer",), series_max=2)
NARROW_LEVEL = Metric("narrow", Kind.GAUGE, "Narrow.", ("peer",), series_max=2)


def value(registry: Registry, metric: Metric, **labels: str) -> float:
    return parse(registry.render())[metric.name].samples[tuple(labels.items())]


def test_a_counter_adds_up_per_label_values() -> None:
    registry = Registry()
    registry.inc(CALLS, rpc="a", status="OK")
    registry.inc(CALLS, 2, status="OK", rpc="a")
    registry.inc(CALLS, value=5, rpc="b", status="OK")

    assert value(registry, CALLS, rpc="a", status="OK") == 3
    assert value(registry, CALLS, rpc="b", status="OK") == 5


def test_a_gauge_is_set_and_a_durable_count_may_be_too() -> None:
    registry = Registry()
    registry.set(LEVEL, 3)
    registry.set(LEVEL, 2.5)
    registry.set(PLAIN, 7)

    assert value(registry, LEVEL) == 2.5
    assert value(registry, PLAIN) == 7


def test_a_gauge_is_read_when_the_metrics_are_asked_for() -> None:
    registry, levels = Registry(), iter([1, 2])
    registry.observe_with(LEVEL, lambda: next(levels))

    assert [value(registry, LEVEL), value(registry, LEVEL)] == [1, 2]


def test_a_split_gives_every_value_of_the_label_left_out() -> None:
    registry = Registry()
    registry.observe_split(DROPPED, lambda: {"full": 1, "expired": 2}, queue="main")

    assert value(registry, DROPPED, queue="main", reason="full") == 1
    assert value(registry, DROPPED, queue="main", reason="expired") == 2


def test_a_value_that_cannot_be_read_costs_its_own_line_and_is_counted() -> None:
    registry = Registry()
    registry.observe_with(LEVEL, lambda: 1 // 0)
    registry.inc(PLAIN)

    registry.render()
    families = parse(registry.render())

    assert "level" not in families
    assert families["plain_total"].samples == {(): 1}
    assert families[OBSERVE_FAILURES.name].samples == {(("metric", "level"),): 2}


def test_an_observer_may_itself_count() -> None:
    registry = Registry()

    def read() -> float:
        registry.inc(PLAIN)
        return 1

    registry.observe_with(LEVEL, read)

    assert value(registry, PLAIN) == 1


@pytest.mark.parametrize("labels", [{}, {"rpc": "a"}, {"rpc": "a", "other": "b"}])
def test_wrong_labels_are_told_at_once(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="calls_total has labels"):
        Registry().inc(CALLS, **labels)


def test_one_name_with_two_meanings_is_told_at_once() -> None:
    registry = Registry()
    registry.inc(PLAIN)

    with pytest.raises(ValueError, match="declared twice"):
        registry.inc(Metric("plain_total", Kind.COUNTER, "Something else."))


def test_a_declared_counter_shows_zero_before_its_first_count() -> None:
    families = parse(Registry([PLAIN, LEVEL, CALLS]).render())

    assert families["plain_total"].samples == {(): 0}
    assert list(families) == ["plain_total"]


def test_series_beyond_the_bound_add_to_one_and_the_sum_stays_exact() -> None:
    registry = Registry()
    for peer in ("a", "b", "c", "d", "c", "a"):
        registry.inc(NARROW, peer=peer)
    families = parse(registry.render())

    assert families["narrow_total"].samples == {
        (("peer", "a"),): 2,
        (("peer", "b"),): 1,
        (("peer", "other"),): 3,
    }
    assert families[SERIES_OVERFLOW.name].samples == {(("metric", "narrow_total"),): 3}


def test_a_gauge_beyond_the_bound_is_left_out_and_counted() -> None:
    registry = Registry()
    for peer in ("a", "b", "c"):
        registry.set(NARROW_LEVEL, 1, peer=peer)
    families = parse(registry.render())

    assert list(families["narrow"].samples) == [(("peer", "a"),), (("peer", "b"),)]
    assert families[SERIES_OVERFLOW.name].samples == {(("metric", "narrow"),): 1}


def test_a_childs_snapshot_survives_json_and_is_replaced_whole() -> None:
    parent, child = Registry(), Registry()
    parent.inc(PLAIN)
    child.inc(PLAIN, 10)
    child.inc(CALLS, rpc="a", status="OK")
    parent.merge(json.loads(json.dumps(child.snapshot())), source="receiver")
    child.inc(PLAIN, 10)
    parent.merge(json.loads(json.dumps(child.snapshot())), source="receiver")

    assert value(parent, PLAIN) == 21
    assert value(parent, CALLS, rpc="a", status="OK") == 1

    parent.merge([], source="receiver")
    assert value(parent, PLAIN) == 1


def test_several_children_add_up_and_one_can_be_forgotten() -> None:
    parent, child = Registry(), Registry()
    child.inc(PLAIN, 3)
    parent.merge(child.snapshot(), source="one")
    parent.merge(child.snapshot(), source="two")
    assert value(parent, PLAIN) == 6

    parent.forget("one")
    assert value(parent, PLAIN) == 3


def test_a_snapshot_that_contradicts_itself_is_refused() -> None:
    child = Registry()
    child.inc(CALLS, rpc="a", status="OK")
    snapshot = child.snapshot()
    snapshot[0]["labels"] = ["rpc"]

    with pytest.raises(ValueError, match="does not match"):
        Registry().merge(snapshot)


def test_counts_of_many_threads_are_exact() -> None:
    registry = Registry()

    def count() -> None:
        for _ in range(2_000):
            registry.inc(PLAIN)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert value(registry, PLAIN) == 8_000


@given(
    st.dictionaries(
        st.tuples(st.text(), st.text()),
        st.one_of(st.integers(), st.floats()),
        max_size=8,
    ),
    st.text(),
)
def test_any_label_value_number_and_help_is_read_back(
    series: dict[tuple[str, str], float], help_text: str
) -> None:
    metric = Metric("calls_total", Kind.COUNTER, help_text, ("rpc", "status"))
    registry = Registry()
    for (rpc, status), number in series.items():
        registry.set(metric, number, rpc=rpc, status=status)
    families = parse(registry.render())

    read = families["calls_total"].samples if series else {}
    assert len(read) == len(series)
    for (rpc, status), number in series.items():
        shown = read[(("rpc", rpc), ("status", status))]
        assert shown == float(number) or (math.isnan(shown) and math.isnan(number))


def test_a_lone_surrogate_does_not_cost_the_scrape() -> None:
    registry = Registry()
    registry.inc(NARROW, peer="a\udc80b")

    assert "a?b" in registry.render()
    registry.render().encode()


def test_nothing_counted_is_an_empty_text() -> None:
    assert Registry().render() == ""


def test_what_was_counted_can_be_read_back() -> None:
    registry = Registry()
    registry.inc(table.SENDER_RECORDS, 2, pipe="a")

    assert registry.value(table.SENDER_RECORDS, pipe="a") == 2
    assert registry.value(table.SENDER_RECORDS, pipe="b") == 0


def test_an_observer_is_forgotten_by_the_labels_it_was_given() -> None:
    registry = Registry()
    for pipe in ("a", "b"):
        registry.observe_with(table.GATHERER_WRITING_OFFSET, lambda: 1, pipe=pipe)
        registry.observe_split(table.SENDER_ABANDONED_COUNT, lambda: {"full": 1}, pipe=pipe)

    registry.unobserve(pipe="a")

    text = registry.render()
    assert 'pipe="a"' not in text
    assert text.count('pipe="b"') == 2


def test_constant_labels_stand_in_every_series_unless_it_has_one_of_that_name() -> None:
    registry = Registry()
    registry.set(table.QUEUE_QUEUED, 1)
    registry.inc(table.SENDER_RECORDS, pipe="own")

    text = registry.render({"cluster": "here", "pipe": "constant"})

    assert 'queue_queued_records{cluster="here",pipe="constant"} 1' in text
    assert 'sender_records_total{cluster="here",pipe="own"} 1' in text

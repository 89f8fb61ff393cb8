"""What every storage provider must do with traces. Run as the storage contract is."""

from __future__ import annotations

from typing import Any

from contracts.storage_contract import NOON, batch, segment
from skyfarer.oap.core import ids
from skyfarer.oap.core.traces import SegmentBrief, TraceCondition, TraceOrder

SHOP = ids.service_id("shop")


def found(storage: Any, order: TraceOrder = TraceOrder.START_TIME, **asked: Any) -> list[str]:
    page = storage.traces(TraceCondition(**asked), order, 0, 100)
    return [brief.segment_id for brief in page]


class TraceContract:
    def test_a_trace_is_its_segments_of_all_days_by_start_time(self, storage: Any) -> None:
        day = 86_400_000
        rows = [segment("b", NOON + 1, kind=25), segment("a", NOON + day), segment("c", NOON)]
        storage.apply(batch(0, 4, [*rows, segment("d", trace_id="other")]))
        trace = storage.trace("t", 10, 1000)
        assert [stored.brief.segment_id for stored in trace] == ["c", "b", "a"]
        assert [stored.kind for stored in trace] == [1, 25, 1]
        assert trace[0].data == b"\x00raw"
        instance, endpoint = ids.instance_id(SHOP, "shop-1"), ids.endpoint_id(SHOP, "/pay")
        expected = SegmentBrief("c", "t", SHOP, instance, endpoint, NOON, 12, False)
        assert trace[0].brief == expected

    def test_names_of_every_kind_have_the_ids_of_the_protocol(self, storage: Any) -> None:
        blank = ["", " ", "\t\n", "\x00", "\x01\x1f"]
        names = [*blank, "\u2003", " \xa0", "é", " é", "\x7f", "a", "'", "x" * 99, "\x00a"]
        rows = [segment(f"s{n:02}", service=name, endpoint=name) for n, name in enumerate(names)]
        storage.apply(batch(0, 1, rows))
        page = storage.traces(TraceCondition(), TraceOrder.START_TIME, 0, 99)
        expected = [(made := ids.service_id(name), ids.endpoint_id(made, name)) for name in names]
        assert [(one.service_id, one.endpoint_id) for one in page] == expected
        assert found(storage, service_id=ids.service_id("")) == [f"s{n:02}" for n in range(5)]

    def test_a_trace_nobody_sent_has_no_segments(self, storage: Any) -> None:
        assert storage.trace("t", 10, 1000) == []
        storage.apply(batch(0, 1, [segment("a")]))
        assert storage.trace("' OR 1=1 --", 10, 1000) == storage.trace("", 10, 1000) == []

    def test_a_trace_is_read_up_to_a_number_of_segments(self, storage: Any) -> None:
        rows = [segment(f"s{n:03}", NOON + n * 3_600_000) for n in range(100)]
        storage.apply(batch(0, 100, rows))
        assert [one.brief.segment_id for one in storage.trace("t", 100, 1000)] == [
            f"s{n:03}" for n in range(100)
        ]
        assert len(storage.trace("t", 7, 1000)) == 7

    def test_segments_beyond_the_bytes_asked_for_come_without_them(self, storage: Any) -> None:
        sizes = (600, 300, 200, 1)
        rows = [segment(f"s{n}", NOON + n, data_binary=b"x" * size) for n, size in enumerate(sizes)]
        storage.apply(batch(0, 4, rows))
        read = [stored.data and len(stored.data) for stored in storage.trace("t", 10, 1000)]
        assert read == [600, 300, None, None]

    def test_segments_are_listed_newest_first_or_longest_first(self, storage: Any) -> None:
        latencies = {"a": 5, "b": 9, "c": 7}
        rows = [
            segment(name, NOON + n, latency=latency)
            for n, (name, latency) in enumerate(latencies.items())
        ]
        storage.apply(batch(0, 3, rows))
        assert found(storage) == ["c", "b", "a"]
        assert found(storage, TraceOrder.DURATION) == ["b", "c", "a"]

    def test_pages_follow_each_other_without_gap_or_overlap(self, storage: Any) -> None:
        storage.apply(batch(0, 5, [segment(f"s{n}") for n in range(5)]))
        pages = [
            storage.traces(TraceCondition(), TraceOrder.DURATION, start, 2) for start in (0, 2, 4)
        ]
        assert [len(page) for page in pages] == [2, 2, 1]
        assert {brief.segment_id for page in pages for brief in page} == {f"s{n}" for n in range(5)}
        assert storage.traces(TraceCondition(), TraceOrder.START_TIME, 5, 2) == []

    def test_pages_over_several_days_are_those_of_one_list(self, storage: Any) -> None:
        day, latencies = 86_400_000, (5, 9, 0, 9, 7, 5, 9, 3, 7, 0, 9, 1)
        rows = [
            segment(f"s{n:02}", NOON + n % 4 * day + n // 8, latency=latency)
            for n, latency in enumerate(latencies)
        ]
        storage.apply(batch(0, len(rows), rows))
        orders = {TraceOrder.START_TIME: "start_time", TraceOrder.DURATION: "latency"}
        for order, column in orders.items():
            whole = sorted(rows, key=lambda row: (-row[column], row["segment_id"]))
            for size in (1, 3, 5, 12, 99):
                pages = [
                    storage.traces(TraceCondition(), order, start, size)
                    for start in range(0, len(rows), size)
                ]
                listed = [brief.segment_id for page in pages for brief in page]
                assert listed == [row["segment_id"] for row in whole]
        assert found(storage, TraceOrder.DURATION, latency_max_ms=5, latency_min_ms=1) == [
            *("s00", "s05", "s07", "s11"),
        ]

    def test_pages_of_segments_that_are_all_alike_follow_their_ids(self, storage: Any) -> None:
        day = 86_400_000
        rows = [segment(f"s{n:03}", NOON + n % 3 * day, latency=n % 2) for n in range(240)]
        storage.apply(batch(0, len(rows), rows))
        whole = sorted(rows, key=lambda row: (-row["latency"], row["segment_id"]))
        for size in (7, 100):
            pages = [
                storage.traces(TraceCondition(), TraceOrder.DURATION, start, size)
                for start in range(0, len(rows), size)
            ]
            listed = [brief.segment_id for page in pages for brief in page]
            assert listed == [row["segment_id"] for row in whole]
        between = (20261115000000, 20261116235959)
        newest = storage.traces(TraceCondition(between=between), TraceOrder.START_TIME, 70, 20)
        assert [brief.segment_id for brief in newest] == [
            *(f"s{n:03}" for n in range(211, 240, 3)),
            *(f"s{n:03}" for n in range(0, 30, 3)),
        ]
        assert storage.traces(TraceCondition(), TraceOrder.DURATION, 0, 0) == []

    def test_each_condition_tells_segments_apart(self, storage: Any) -> None:
        other = {"service": "cart", "instance": "cart-1", "endpoint": "/add", "trace_id": "u"}
        rows = [segment("a"), segment("b", **other, latency=99, is_error=True)]
        storage.apply(batch(0, 2, rows))
        cart = ids.service_id("cart")
        assert found(storage, service_id=SHOP) == ["a"]
        assert found(storage, instance_id=ids.instance_id(cart, "cart-1")) == ["b"]
        assert found(storage, endpoint_id=ids.endpoint_id(cart, "/add")) == ["b"]
        assert found(storage, trace_id="u") == found(storage, is_error=True) == ["b"]
        assert found(storage, is_error=False) == ["a"]
        assert found(storage, latency_min_ms=99) == found(storage, latency_min_ms=13) == ["b"]
        assert found(storage, latency_max_ms=12) == ["a"]
        assert found(storage, service_id=SHOP, is_error=True) == []
        assert found(storage, service_id="' OR '1'='1") == []

    def test_a_range_of_seconds_has_both_its_ends_over_midnight(self, storage: Any) -> None:
        midnight = NOON + 12 * 3_600_000
        times = {"a": midnight - 2000, "b": midnight - 1, "c": midnight, "d": midnight + 1000}
        storage.apply(batch(0, 4, [segment(name, at_ms) for name, at_ms in times.items()]))
        assert found(storage, between=(20261115235959, 20261116000000)) == ["c", "b"]
        assert found(storage, between=(20261115000000, 20261115235958)) == ["a"]
        assert found(storage, between=(19700101000000, 99981231235959)) == ["d", "c", "b", "a"]
        assert found(storage, between=(20261201000000, 20261231235959)) == []

    def test_segments_are_found_by_all_the_tags_asked_for(self, storage: Any) -> None:
        rows = [
            segment("a", NOON + 2, tags=["http.method=GET", "db.type=a=b"]),
            segment("b", NOON + 1, tags=["http.method=GET"]),
            segment("c", tags=[]),
        ]
        storage.apply(batch(0, 3, rows))
        assert found(storage, tags=("http.method=GET",)) == ["a", "b"]
        assert found(storage, tags=("db.type=a=b", "http.method=GET")) == ["a"]
        assert found(storage, tags=("http.method=GET",), trace_id="t", service_id=SHOP) != []
        assert found(storage, tags=("http.method=POST",)) == []
        assert found(storage, tags=("http.method",)) == found(storage, tags=("",)) == []

    def test_tags_are_proposed_by_the_days_that_had_them(self, storage: Any) -> None:
        day = 86_400_000
        tags = ["http.method=GET", "http.method=", "db.type=a=b"]
        rows = [segment("a", tags=tags), segment("b", NOON + day, tags=["http.method=PUT"])]
        storage.apply(batch(0, 2, rows))
        storage.apply(batch(2, 3, [segment("c", tags=["http.method=GET", "db.type=%"])]))
        first, second = (20261115235959,) * 2, (20261116000000,) * 2
        both = (first[0], second[0])
        assert storage.tag_keys(first, 9) == ["db.type", "http.method"]
        assert storage.tag_keys(second, 9) == ["http.method"]
        assert storage.tag_keys(both, 1) == ["db.type"]
        assert storage.tag_values("http.method", first, 9) == ["", "GET"]
        assert storage.tag_values("http.method", both, 9) == ["", "GET", "PUT"]
        assert storage.tag_values("http.method", both, 1) == [""]
        assert storage.tag_values("db.type", both, 9) == ["%", "a=b"]
        assert storage.tag_values("'", both, 9) == storage.tag_keys((1, 2), 9) == []

"""What every storage provider must do with logs. Run as the storage contract is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from contracts.storage_contract import NOON, batch, segment
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.logs import LogCondition, StoredLog

SHOP = ids.service_id("shop")
DAY_MS = 86_400_000
LOGS = pa.schema(
    {
        "sequence": pa.int64(),
        "part": pa.int32(),
        "kind": pa.int32(),
        **dict.fromkeys(("service", "instance", "endpoint"), pa.string()),
        "layer": pa.int32(),
        **dict.fromkeys(("trace_id", "log_segment_id"), pa.string()),
        "span_id": pa.int32(),
        **dict.fromkeys(("start_time", "minute"), pa.int64()),
        "tags": pa.list_(pa.string()),
        "payload": pa.binary(),
    }
)


def log(payload: str | bytes, at_ms: int = NOON, **other: Any) -> dict[str, Any]:
    """Told apart by its payload."""
    data = payload.encode() if isinstance(payload, str) else payload
    row = {
        "part": 0,
        "kind": 5,
        "service": "shop",
        "instance": "shop-1",
        "endpoint": "/pay",
        "layer": 2,
    }
    row |= {"trace_id": "t", "log_segment_id": "s", "span_id": 0, "start_time": at_ms}
    return row | {"minute": at_ms // 60_000, "tags": [], "payload": data} | other


def told(first: int, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Numbered from `first` on, in their order."""
    numbered = [{"sequence": first + place, **row} for place, row in enumerate(rows)]
    return pa.Table.from_pylist(numbered, schema=LOGS)


def apply(storage: Any, *rows: dict[str, Any]) -> None:
    first = storage.applied("queue-a")
    storage.apply(batch(first, first + len(rows), logs=told(first, rows)))


def found(storage: Any, newest_first: bool = True, **asked: Any) -> list[str]:
    page = storage.logs(LogCondition(**asked), newest_first, 0, 100, 10_000)
    return [one.data.decode() for one in page]


class LogContract:
    def test_a_log_is_read_as_it_was_written(self, storage: Any) -> None:
        raw = bytes(range(256))
        apply(storage, log(raw, NOON + 1_999, kind=33, service="é' --"))
        service = ids.service_id("é' --")
        instance, endpoint = ids.instance_id(service, "shop-1"), ids.endpoint_id(service, "/pay")
        expected = StoredLog(service, instance, endpoint, "t", NOON + 1_999, 33, raw)
        second = (20261115120001,) * 2
        assert storage.logs(LogCondition(second), True, 0, 9, 1000) == [expected]
        assert storage.logs(LogCondition((20261115120002,) * 2), True, 0, 9, 1000) == []

    def test_a_storage_without_logs_finds_none(self, storage: Any) -> None:
        storage.apply(batch(0, 1, [segment("a")]))
        assert found(storage) == found(storage, trace_id="t") == []
        storage.apply(batch(1, 2, logs=told(1, [])))
        assert found(storage) == storage.log_tag_keys((20261115000000, 20261115000000), 9) == []

    def test_a_log_that_names_no_instance_or_endpoint_has_no_ids_of_them(
        self, storage: Any
    ) -> None:
        apply(storage, log("a", instance="", endpoint="", trace_id="", log_segment_id=""))
        (one,) = storage.logs(LogCondition(service_id=SHOP), True, 0, 9, 1000)
        assert (one.instance_id, one.endpoint_id, one.trace_id) == ("", "", "")
        blank = ids.instance_id(SHOP, "")
        assert found(storage, instance_id=blank) == found(storage, endpoint_id=blank) == []

    def test_whether_a_service_is_a_real_one_follows_from_its_layer(self, storage: Any) -> None:
        apply(storage, log("a", layer=Layer.VIRTUAL_DATABASE), log("b", layer=Layer.MESH))
        assert found(storage, service_id=ids.service_id("shop", normal=False)) == ["a"]
        assert found(storage, service_id=SHOP) == ["b"]

    def test_each_condition_tells_logs_apart(self, storage: Any) -> None:
        other = {"service": "cart", "instance": "cart-1", "endpoint": "/add", "trace_id": "u"}
        apply(storage, log("a"), log("b", **other, log_segment_id="r", span_id=7))
        cart = ids.service_id("cart")
        assert found(storage, service_id=SHOP) == found(storage, trace_id="t") == ["a"]
        assert found(storage, instance_id=ids.instance_id(cart, "cart-1")) == ["b"]
        assert found(storage, endpoint_id=ids.endpoint_id(cart, "/add")) == ["b"]
        assert found(storage, trace_id="u") == found(storage, segment_id="r") == ["b"]
        assert found(storage, span_id=7) == ["b"]
        assert found(storage, span_id=0) == ["a"]
        assert found(storage, trace_id="u", segment_id="s") == []
        assert found(storage, service_id=SHOP, span_id=7) == []
        assert found(storage, service_id="' OR '1'='1") == found(storage, trace_id="") == []

    def test_logs_are_listed_by_time_and_then_by_their_place(self, storage: Any) -> None:
        apply(storage, log("b", NOON + 1), log("c", NOON + 1), log("e", NOON + DAY_MS), log("a"))
        apply(storage, log("d", NOON + 1))
        assert found(storage, newest_first=False) == ["a", "b", "c", "d", "e"]
        assert found(storage) == ["e", "d", "c", "b", "a"]

    def test_pages_follow_each_other_without_gap_or_overlap(self, storage: Any) -> None:
        apply(storage, *(log(str(n)) for n in range(5)))
        for newest_first in (True, False):
            pages = [
                storage.logs(LogCondition(), newest_first, start, 2, 1000) for start in (0, 2, 4)
            ]
            assert [len(page) for page in pages] == [2, 2, 1]
            assert {one.data for page in pages for one in page} == {b"%d" % n for n in range(5)}
        assert storage.logs(LogCondition(), True, 5, 2, 1000) == []

    def test_logs_of_one_number_in_two_queues_are_two(self, storage: Any) -> None:
        for partition in ("queue-a", "queue-b"):
            one = batch(0, 1, logs=told(0, [log(partition)]))
            storage.apply(replace(one, partition=partition))
        assert found(storage) == ["queue-b", "queue-a"]

    def test_a_range_of_seconds_has_both_its_ends_over_midnight(self, storage: Any) -> None:
        midnight = NOON + 12 * 3_600_000
        times = {"a": midnight - 2000, "b": midnight - 1, "c": midnight, "d": midnight + 1000}
        apply(storage, *(log(name, at_ms) for name, at_ms in times.items()))
        assert found(storage, between=(20261115235959, 20261116000000)) == ["c", "b"]
        assert found(storage, between=(20261115000000, 20261115235958)) == ["a"]
        assert found(storage, between=(19700101000000, 99981231235959)) == ["d", "c", "b", "a"]
        assert found(storage, between=(20261201000000, 20261231235959)) == []

    def test_logs_beyond_the_bytes_asked_for_come_without_them(self, storage: Any) -> None:
        sizes = (600, 300, 200, 1)
        apply(storage, *(log(b"x" * size, NOON + n) for n, size in enumerate(sizes)))
        page = storage.logs(LogCondition(), False, 0, 10, 1000)
        assert [one.data and len(one.data) for one in page] == [600, 300, None, None]

    def test_logs_are_found_by_all_the_tags_asked_for(self, storage: Any) -> None:
        apply(
            storage,
            log("a", NOON + 2, tags=["level=ERROR", "code=a=b"]),
            log("b", NOON + 1, tags=["level=ERROR"]),
            log("c"),
            log("d", tags=None),
        )
        assert found(storage, tags=("level=ERROR",)) == ["a", "b"]
        assert found(storage, tags=("code=a=b", "level=ERROR")) == ["a"]
        assert found(storage, tags=("level=ERROR",), trace_id="t", service_id=SHOP) == ["a", "b"]
        assert found(storage) == ["a", "b", "d", "c"]
        assert found(storage, tags=("level=WARN",)) == found(storage, tags=("level",)) == []

    def test_logs_are_found_by_all_the_words_in_their_bytes(self, storage: Any) -> None:
        hostile = r"100% of_it \\x41 '; DROP TABLE log --"
        apply(
            storage,
            log("Disk FULL on /var: caf\u00e9", NOON + 3),
            log(b"\xff\x00disk\x0afull\xfe", NOON + 2),
            log(hostile, NOON + 1),
            log("", NOON, tags=["k=disk"]),
        )

        def having(*words: str) -> list[int]:
            page = storage.logs(LogCondition(words=words), True, 0, 9, 10_000)
            return [NOON + 3 - one.timestamp for one in page]

        assert having("disk") == having("DISK", "full") == [0, 1]
        assert having("disk full") == having("FULL ON /VAR", "café") == [0]
        assert having("\n") == having("\x00disk") == [1]
        assert having(hostile) == having("%") == having("of_it") == having("\\\\X41 '") == [2]
        assert having("CAF\u00c9") == having("fu_l") == having("d%k") == having("x41", "disk") == []
        assert having("") == [0, 1, 2, 3]

    def test_words_narrow_whatever_else_is_asked_and_pages_count_what_has_them(
        self, storage: Any
    ) -> None:
        rows = [log(f"{'odd' if n % 2 else 'even'} {n}", NOON + n) for n in range(6)]
        apply(storage, *rows, log("odd one out", NOON + DAY_MS, service="cart"))
        assert found(storage, words=("odd",), service_id=SHOP) == ["odd 5", "odd 3", "odd 1"]
        second = storage.logs(LogCondition(words=("ODD",)), False, 2, 2, 1000)
        assert [one.data for one in second] == [b"odd 5", b"odd one out"]
        night = (20261115000000, 20261115115959)
        assert found(storage, words=("odd",), between=night) == []

    def test_tags_of_logs_are_proposed_apart_from_those_of_segments(self, storage: Any) -> None:
        storage.apply(batch(0, 1, [segment("a", tags=["http.method=GET", "level=of a segment"])]))
        apply(storage, log("a", tags=["level=ERROR", "level=", "code=a=b"]))
        apply(storage, log("b", tags=["level=ERROR"]), log("c", NOON + DAY_MS, tags=["level=WARN"]))
        first, second = (20261115235959,) * 2, (20261116000000,) * 2
        both = (first[0], second[0])
        assert storage.log_tag_keys(first, 9) == ["code", "level"]
        assert storage.log_tag_keys(second, 9) == ["level"]
        assert storage.log_tag_keys(both, 1) == ["code"]
        assert storage.log_tag_values("level", first, 9) == ["", "ERROR"]
        assert storage.log_tag_values("level", both, 9) == ["", "ERROR", "WARN"]
        assert storage.log_tag_values("code", both, 9) == ["a=b"]
        assert storage.log_tag_values("http.method", both, 9) == []
        assert storage.tag_keys(both, 9) == ["http.method", "level"]
        assert storage.tag_values("level", both, 9) == ["of a segment"]

    def test_logs_of_a_batch_that_is_refused_are_not_kept(self, storage: Any) -> None:
        with pytest.raises(PermanentError):
            storage.apply(batch(1, 2, logs=told(1, [log("a", tags=["k=v"])])))
        assert found(storage) == storage.log_tag_keys((20261115000000, 20261115000000), 9) == []

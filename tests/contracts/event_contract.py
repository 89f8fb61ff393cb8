"""What every storage provider must do with events. Run as the storage contract is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from contracts.storage_contract import NOON, batch
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.events import MESSAGE_CHARS_MAX, EventCondition, StoredEvent

MIDNIGHT = NOON + 12 * 3_600_000
EVENTS = pa.schema(
    {
        "sequence": pa.int64(),
        **dict.fromkeys(("uuid", "service", "instance", "endpoint", "name"), pa.string()),
        "type": pa.int32(),
        "message": pa.string(),
        "parameters": pa.map_(pa.string(), pa.string()),
        **dict.fromkeys(("begun", "ended"), pa.int64()),
        "layer": pa.string(),
        "minute": pa.int64(),
    }
)


def event(uuid: str, begun: int = NOON, ended: int = 0, **other: Any) -> dict[str, Any]:
    row = {"uuid": uuid, "service": "shop", "instance": "shop-1", "endpoint": "", "name": "Reboot"}
    row |= {"type": 0, "message": "", "parameters": {}, "begun": begun, "ended": ended}
    return row | {"layer": "GENERAL", "minute": (begun or ended) // 60_000} | other


def apply(storage: Any, *rows: dict[str, Any]) -> None:
    first = storage.applied("queue-a")
    numbered = [
        {"sequence": first + place, **row, "parameters": list(row["parameters"].items())}
        for place, row in enumerate(rows)
    ]
    events = pa.Table.from_pylist(numbered, schema=EVENTS)
    storage.apply(batch(first, first + len(rows), events=events))


def read(storage: Any, newest_first: bool = True, **asked: Any) -> list[StoredEvent]:
    page: list[StoredEvent] = storage.events(EventCondition(**asked), newest_first, 0, 100)
    return page


def found(storage: Any, newest_first: bool = True, **asked: Any) -> list[str]:
    return [one.uuid for one in read(storage, newest_first, **asked)]


def at(second: str) -> tuple[int, int]:
    return int(f"202611{second}"), int(f"202611{second}")


BEGIN = event("e", NOON, message="starts", parameters={"b": "1"}, layer="GENERAL")
END = event(
    "e",
    0,
    NOON + 5_000,
    service="",
    instance="",
    name="",
    message="failed",
    type=1,
    layer="UNDEFINED",
)
BOTH = StoredEvent(
    *("e", "shop", "shop-1", "", "Reboot", 1, "failed"),
    *((("b", "1"),), NOON, NOON + 5_000, "GENERAL"),
)


class EventContract:
    def test_an_event_is_read_as_it_was_written(self, storage: Any) -> None:
        parameters = {"z": "é' --", "a": ""}
        one = event(
            "e", NOON + 1_999, NOON + 9_000, endpoint="/p", type=1, message='"', layer="K8S"
        )
        apply(storage, one | {"parameters": parameters})
        expected = StoredEvent(
            *("e", "shop", "shop-1", "/p", "Reboot", 1, '"'),
            *((("a", ""), ("z", "é' --")), NOON + 1_999, NOON + 9_000, "K8S"),
        )
        assert read(storage) == read(storage, between=at("15120001")) == [expected]
        assert read(storage, between=at("15120002")) == read(storage, between=at("15120000")) == []

    def test_a_storage_without_events_finds_none(self, storage: Any) -> None:
        assert found(storage) == found(storage, uuid="e") == []
        apply(storage)
        assert found(storage) == []

    def test_each_condition_tells_events_apart(self, storage: Any) -> None:
        other = {"service": "cart", "instance": "cart-1", "endpoint": "/add", "name": "Deploy"}
        apply(storage, event("a"), event("b", **other, type=1, layer="K8S"))
        assert found(storage, uuid="a") == found(storage, service="shop") == ["a"]
        assert found(storage, instance="cart-1") == found(storage, endpoint="/add") == ["b"]
        assert found(storage, name="Deploy") == found(storage, layer="K8S") == ["b"]
        assert found(storage, type=0) == ["a"]
        assert found(storage, type=1) == ["b"]
        assert found(storage, service="shop", type=1) == found(storage, uuid="' OR 1=1 --") == []

    def test_an_event_told_twice_in_one_batch_is_one(self, storage: Any) -> None:
        apply(storage, BEGIN, event("other"), END)
        assert read(storage, uuid="e") == [BOTH]
        assert sorted(found(storage)) == ["e", "other"]

    def test_an_event_told_in_two_batches_is_one(self, storage: Any) -> None:
        apply(storage, BEGIN)
        apply(storage, END, event("other"))
        assert read(storage, uuid="e") == [BOTH]
        apply(storage, event("e", NOON - 1_000, NOON + 1_000, name="Restart"))
        (again,) = read(storage, uuid="e")
        assert (again.name, again.message, again.type) == ("Restart", "failed", 1)
        assert (again.start_time, again.end_time) == (NOON - 1_000, NOON + 5_000)
        assert found(storage, between=at("15115959")) == ["e"]
        assert found(storage, between=at("15120000")) == ["other"]

    def test_an_end_that_comes_before_its_beginning_is_kept(self, storage: Any) -> None:
        apply(storage, END)
        assert found(storage, between=at("15120005")) == ["e"]
        apply(storage, BEGIN)
        (one,) = read(storage)
        assert (one.start_time, one.end_time, one.message) == (NOON, NOON + 5_000, "starts")
        assert found(storage, between=at("15120005")) == []

    def test_an_event_over_midnight_is_one_of_the_day_it_began(self, storage: Any) -> None:
        begun = BEGIN | {"begun": MIDNIGHT - 1_000, "minute": (MIDNIGHT - 1_000) // 60_000}
        ended = END | {"ended": MIDNIGHT + 1_000, "minute": MIDNIGHT // 60_000}
        expected = StoredEvent(
            *("e", "shop", "shop-1", "", "Reboot", 1, "failed"),
            *((("b", "1"),), MIDNIGHT - 1_000, MIDNIGHT + 1_000, "GENERAL"),
        )
        apply(storage, begun, ended)
        assert read(storage, between=at("15235959")) == read(storage, uuid="e") == [expected]
        assert found(storage, type=1, service="shop") == ["e"]
        assert found(storage, type=0) == []
        assert found(storage, between=(20261116000000, 20261116235959)) == []
        assert found(storage, between=(20261115000000, 20261116235959)) == ["e"]

    def test_an_event_that_tells_no_time_is_found_by_that_of_its_arrival(
        self, storage: Any
    ) -> None:
        timeless = {"begun": 0, "ended": 0, "minute": NOON // 60_000, "layer": "UNDEFINED"}
        apply(storage, event("b", NOON - 1), event("e") | timeless, event("a", NOON + 1))
        assert found(storage) == ["a", "e", "b"]
        (one,) = read(storage, uuid="e", between=at("15120000"))
        assert (one.start_time, one.end_time, one.layer) == (0, 0, "UNDEFINED")
        apply(storage, event("e", 0, NOON + 2_000))
        assert found(storage, between=at("15120002")) == ["e"]
        assert found(storage, between=at("15120000")) == ["a"]

    def test_events_are_listed_by_their_time_and_then_by_their_ids(self, storage: Any) -> None:
        apply(storage, event("c", NOON), event("b", NOON), event("d", 0, NOON + 1), event("a", 1))
        assert found(storage) == ["d", "b", "c", "a"]
        assert found(storage, newest_first=False) == ["a", "b", "c", "d"]

    def test_pages_follow_each_other_without_gap_or_overlap(self, storage: Any) -> None:
        apply(storage, *(event(f"e{n}") for n in range(5)))
        pages = [storage.events(EventCondition(), True, start, 2) for start in (0, 2, 4, 6)]
        assert [[one.uuid for one in page] for page in pages] == [
            *(["e0", "e1"], ["e2", "e3"], ["e4"], [])
        ]

    def test_a_long_message_is_cut(self, storage: Any) -> None:
        apply(storage, event("e", message="é" * (MESSAGE_CHARS_MAX + 1)))
        assert read(storage)[0].message == "é" * MESSAGE_CHARS_MAX

    def test_events_of_a_batch_that_is_refused_are_not_kept(self, storage: Any) -> None:
        events = pa.Table.from_pylist([{"sequence": 1, **event("e", parameters=[])}], schema=EVENTS)
        with pytest.raises(PermanentError):
            storage.apply(batch(1, 2, events=events))
        assert found(storage) == []

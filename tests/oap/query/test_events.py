"""Lists of events, through the HTTP door from a real storage."""

from __future__ import annotations

from typing import Any

from contracts.event_contract import event

# The fields that SkyWalking's page selects.
QUERY_EVENTS = """
query queryEvents($condition: EventQueryCondition) {
  fetchEvents: queryEvents(condition: $condition) {
    events {
      uuid source { service serviceInstance endpoint } name type message
      parameters { key value } startTime endTime layer
    }
  }
}"""
MORNING = {"start": "2026-11-15 0800", "end": "2026-11-15 0859", "step": "MINUTE"}


def page(shelf, **asked: Any) -> list[dict[str, Any]]:
    asked = {"time": MORNING, "paging": {"pageNum": 1, "pageSize": 20}} | asked
    events = shelf.ask(QUERY_EVENTS, condition=asked)["fetchEvents"]["events"]
    assert isinstance(events, list)
    return events


def listed(shelf, **asked: Any) -> list[str]:
    return [one["uuid"] for one in page(shelf, **asked)]


def test_an_event_told_in_two_messages_is_listed_as_one(shelf, eight, fresh):
    begun = event(fresh, eight, service=fresh, message="starts", parameters={"b": "2", "a": "1"})
    shelf.put_events(begun)
    shelf.put_events(event(fresh, 0, eight + 9, service=fresh, type=1, message="failed"))
    assert page(shelf, uuid=fresh, time=None) == [
        {
            "uuid": fresh,
            "source": {"service": fresh, "serviceInstance": "shop-1", "endpoint": ""},
            "name": "Reboot",
            "type": "Error",
            "message": "failed",
            "parameters": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
            "startTime": eight,
            "endTime": eight + 9,
            "layer": "GENERAL",
        }
    ]


def test_every_condition_narrows_the_list(shelf, eight, fresh):
    a, b, c = (f"{fresh}{name}" for name in "abc")
    shelf.put_events(
        event(a, eight, service=fresh, instance="i1", name="Start"),
        event(b, eight + 1, service=fresh, instance="i2", endpoint="/b", type=1, layer="K8S"),
        event(c, eight + 2, service=f"{fresh}-other"),
    )

    def of(**other: Any) -> list[str]:
        names = {name: other.pop(name) for name in ("serviceInstance", "endpoint") if name in other}
        return listed(shelf, source={"service": fresh} | names, **other)

    assert of() == of(order="DES") == of(serviceInstance="", name="", layer="") == [b, a]
    assert of(order="ASC") == [a, b]
    assert of(serviceInstance="i2") == of(endpoint="/b") == of(layer="K8S") == [b]
    assert of(type="Error") == [b]
    assert of(type="Normal") == of(name="Start") == of(uuid=a) == [a]
    assert of(uuid=c) == of(name="x' OR 1=1 --") == []
    assert of(time=MORNING | {"start": "2026-11-15 0801"}) == []


def test_a_number_that_is_no_type_is_no_error(shelf, eight, fresh):
    shelf.put_events(event(fresh, eight, type=7))
    assert [one["type"] for one in page(shelf, uuid=fresh)] == ["Normal"]


def test_pages_are_numbered_from_one_and_a_size_is_the_first(shelf, eight, fresh):
    shelf.put_events(*(event(f"{fresh}{n}", eight, service=fresh) for n in range(5)))

    def numbered(number: int) -> list[str]:
        paging = {"pageNum": number, "pageSize": 2}
        found = listed(shelf, source={"service": fresh}, paging=paging)
        return [uuid.removeprefix(fresh) for uuid in found]

    assert [numbered(number) for number in (1, 2, 3, 4)] == [["0", "1"], ["2", "3"], ["4"], []]
    for size, count in ((3, 3), (0, 0), (None, 5)):
        found = listed(shelf, source={"service": fresh}, paging=None, size=size)
        assert len(found) == count


def test_a_condition_that_cannot_be_answered_says_why(shelf):
    def error(**asked: Any) -> str:
        (message,) = shelf.errors(QUERY_EVENTS, condition=asked)
        assert isinstance(message, str)
        return message

    assert error(uuid="") == "the condition needs a uuid or a time"
    assert "is larger than" in error(time=MORNING, size=10**6)
    far = {"pageNum": 10**9, "pageSize": 20}
    assert "lies beyond the first 10000 events" in error(time=MORNING, paging=far)
    assert shelf.errors(QUERY_EVENTS) == ["the condition is missing"]

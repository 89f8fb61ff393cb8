from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from satellite.processors.passes import Pass
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.contracts import Batch, Loss, OnFailure, Unfit, Verdict
from skyfarer.satellite.processors.chain import Chain
from skyfarer.satellite.processors.event import EMITTED_MAX, Context, Event
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.wire.messages import InstancePingPkg, SegmentObject
from skyfarer.wire.rpc import Kind

Act = Callable[[Event, Context], bool]


class Script:
    """A filter that does as the test says, with the kinds it is told to look at."""

    def __init__(
        self,
        act: Act = lambda event, context: True,
        kinds: set[int] | None = None,
        verdict: Verdict = Verdict.LOOK,
        on_failure: OnFailure = "pass",
    ) -> None:
        self._act = act
        self._kinds = kinds
        self._verdict = verdict
        self.on_failure = on_failure
        self.seen: list[bytes] = []

    def verdict(self, kind: int) -> Verdict:
        return self._verdict if self._kinds is None or kind in self._kinds else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        self.seen.append(bytes(event.payload))
        return self._act(event, context)


def ping(service: str) -> InstancePingPkg:
    return InstancePingPkg(service=service)


def pings(*services: str) -> list[bytes]:
    return [ping(service).SerializeToString() for service in services]


def sent(batches: tuple[Batch, ...]) -> list[tuple[int, int, bytes]]:
    """Number, kind and payload of every record."""
    return [
        (number, batch.kind, bytes(payload))
        for batch in batches
        for number, payload in zip(batch.numbers, batch.payloads, strict=True)
    ]


def rename(event: Event, context: Context) -> bool:
    event.message.service = event.message.service.upper()
    event.changed()
    return True


def test_without_a_filter_for_its_kind_a_batch_passes_as_the_same_object() -> None:
    other = Script(kinds={Kind.LOG})
    chain = Pass(other).chain
    batch = Batch(7, Kind.SEGMENT, (b"no", b"protobuf"))

    with pytest.raises(StopIteration) as ended:
        chain.process(batch).send(None)

    assert ended.value.value.outgoing[0] is batch
    assert other.seen == []


def test_a_kind_that_the_first_filter_drops_is_not_looked_at() -> None:
    dropping, behind = Script(verdict=Verdict.DROP), Script()

    done = Pass(dropping, behind, names=["no-pings", "other"]).of(3, [b"x"] * 5, first=10)

    assert done.outgoing == ()
    assert done.losses == (Loss(10, 15, "filter:no-pings"),)
    assert dropping.seen == behind.seen == []


def test_what_is_left_keeps_its_numbers_and_answers_for_all() -> None:
    odd = Script(lambda event, context: event.sequence % 2 == 1)

    done = Pass(odd).of(Kind.LOG, [b"a", b"b", b"c", b"d", b"e"], first=20)

    (batch,) = done.outgoing
    assert sent(done.outgoing) == [(21, Kind.LOG, b"b"), (23, Kind.LOG, b"d")]
    assert (batch.first, batch.end) == (20, 25)
    assert [(loss.first, loss.end) for loss in done.losses] == [(20, 21), (22, 23), (24, 25)]


def test_neighbours_dropped_for_one_reason_are_one_loss() -> None:
    early = Script(lambda event, context: event.sequence >= 3)
    late = Script(lambda event, context: event.sequence < 5)

    done = Pass(early, late, names=["early", "late"]).of(Kind.LOG, [b"x"] * 8)

    assert done.losses == (Loss(0, 3, "filter:early"), Loss(5, 8, "filter:late"))


def test_filters_work_on_one_message_which_is_encoded_at_the_end() -> None:
    decoded: list[Any] = []

    def look(event: Event, context: Context) -> bool:
        decoded.append(event.message)
        return True

    done = Pass(Script(look), Script(rename), Script(look)).of(Kind.INSTANCE_PING, pings("order"))

    assert decoded[0] is decoded[1]
    assert [payload for _, _, payload in sent(done.outgoing)] == pings("ORDER")


def test_an_event_nobody_changed_keeps_its_very_bytes() -> None:
    # In an order that encoding it again would not keep.
    odd = InstancePingPkg(layer="GENERAL").SerializeToString() + pings("order")[0]

    def look(event: Event, context: Context) -> bool:
        return bool(event.message.service)

    done = Pass(Script(look)).of(Kind.INSTANCE_PING, [odd])

    assert done.outgoing[0].payloads == (odd,)


def test_a_changed_event_keeps_fields_this_version_does_not_know() -> None:
    future = b"\xa8\xd9\x02\x01"

    done = Pass(Script(rename)).of(Kind.INSTANCE_PING, [pings("order")[0] + future])

    assert bytes(done.outgoing[0].payloads[0]) == pings("ORDER")[0] + future


def test_what_becomes_another_kind_is_seen_as_that_kind_by_the_filters_behind() -> None:
    def convert(event: Event, context: Context) -> bool:
        if event.sequence == 1:
            event.become(Kind.SEGMENT, SegmentObject(traceId="t"))
        return True

    before, after = Script(kinds={Kind.SEGMENT}), Script(kinds={Kind.SEGMENT})
    done = Pass(before, Script(convert), after).of(Kind.INSTANCE_PING, pings("a", "b", "c"))

    assert before.seen == []
    assert len(after.seen) == 1
    assert [(batch.first, batch.kind, batch.end) for batch in done.outgoing] == [
        (0, Kind.INSTANCE_PING, 1),
        (1, Kind.SEGMENT, 2),
        (2, Kind.INSTANCE_PING, 3),
    ]


def test_emitted_events_pass_the_filters_behind_and_are_not_numbered() -> None:
    def emit(event: Event, context: Context) -> bool:
        context.emit(Kind.INSTANCE_PING, ping(f"made from {event.sequence}"))
        return event.sequence != 1

    picky = Script(lambda event, context: "from 2" not in event.message.service)
    done = Pass(Script(emit), picky).of(Kind.INSTANCE_PING, pings("a", "b", "c"), first=1)

    (emitted,) = done.emitted
    assert emitted.emitted
    assert [bytes(one) for one in emitted.payloads] == pings("made from 1", "made from 3")
    assert [number for number, _, _ in sent(done.outgoing)] == [2, 3]
    assert done.losses == (Loss(1, 2, "filter:f0"),)


def test_a_filter_that_fails_has_emitted_nothing() -> None:
    def emit_and_fail(event: Event, context: Context) -> bool:
        context.emit(Kind.INSTANCE_PING, ping("half done"))
        if event.sequence == 0:
            raise Unfit("example", "cannot go on")
        return True

    done = Pass(Script(emit_and_fail)).of(Kind.INSTANCE_PING, pings("a", "b"))

    assert [len(batch.payloads) for batch in done.emitted] == [1]
    assert len(sent(done.outgoing)) == 2


def test_one_event_cannot_become_any_number_of_them() -> None:
    def flood(event: Event, context: Context) -> bool:
        for _ in range(EMITTED_MAX + 1):
            context.emit(Kind.INSTANCE_PING, ping("again"))
        return True

    passing = Pass(Script(flood, on_failure="drop"))
    done = passing.of(Kind.INSTANCE_PING, pings("a"))

    assert done.emitted == ()
    assert done.losses == (Loss(0, 1, "filter:f0", Kind.INSTANCE_PING, (), done.losses[0].detail),)
    assert 'reason="emitted_too_many"} 1' in passing.registry.render()


@pytest.mark.parametrize("policy", ["pass", "drop", "park"])
def test_an_event_that_cannot_be_decoded_follows_the_policy(policy: OnFailure) -> None:
    garbage = b"\x0a\xff"
    look = Script(lambda event, context: bool(event.message.service), on_failure=policy)
    passing = Pass(look, names=["picky"])

    done = passing.of(Kind.INSTANCE_PING, [*pings("a"), garbage, *pings("b")])

    kept = [number for number, _, _ in sent(done.outgoing)]
    assert kept == ([0, 1, 2] if policy == "pass" else [0, 2])
    assert [(loss.reason, loss.payloads) for loss in done.losses] == (
        [] if policy == "pass" else [("filter:picky", (garbage,) if policy == "park" else ())]
    )
    counted = 'processor_failures_total{pipe="p",filter="picky",reason="undecodable"} 1'
    assert counted in passing.registry.render()


def test_what_is_parked_is_the_event_as_the_filters_before_left_it() -> None:
    def fail(event: Event, context: Context) -> bool:
        raise Unfit("example", "no")

    done = Pass(Script(rename), Script(fail, on_failure="park")).of(
        Kind.INSTANCE_PING, pings("secret")
    )

    assert [bytes(one) for one in done.losses[0].payloads] == pings("SECRET")
    assert "f1: no" in done.losses[0].detail


def test_a_defect_of_a_filter_is_a_failure_of_the_event_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(event: Event, context: Context) -> bool:
        raise ZeroDivisionError("a defect")

    passing = Pass(Script(broken))
    with caplog.at_level(logging.WARNING):
        done = passing.of(Kind.LOG, [b"a", b"b", b"c"])

    assert len(sent(done.outgoing)) == 3
    assert 'reason="defect"} 3' in passing.registry.render()
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is not None


def test_a_batch_of_a_batch_keeps_numbers_through_a_second_chain() -> None:
    first = Pass(Script(lambda event, context: event.sequence % 3 == 0))
    (batch,) = first.of(Kind.LOG, [bytes([n]) for n in range(10)]).outgoing

    parts = batch.parts(2)

    assert [(part.first, part.end, list(part.numbers)) for part in parts] == [
        (0, 6, [0, 3]),
        (6, 10, [6, 9]),
    ]
    head, tail = batch.split(1)
    assert (list(head.numbers), head.end, list(tail.numbers), tail.end) == ([0], 3, [3, 6, 9], 10)


def test_too_many_filters_are_a_wrong_configuration() -> None:
    with pytest.raises(ConfigError, match="33 filters"):
        Chain("p", [("x", Script())] * 33, HandClock(), Registry())


def test_a_long_name_still_makes_a_reason_that_a_ledger_keeps() -> None:
    dropping = Script(verdict=Verdict.DROP)

    done = Pass(dropping, names=["the-filter-of-another-package"]).of(Kind.LOG, [b"x"])

    assert len(done.losses[0].reason.encode()) == 32

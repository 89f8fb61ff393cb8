"""What every client of a sender must do. A client's test file subclasses and gives `bench`.

A bench has a forwarder that was not started, and the upstream it sends to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.satellite.contracts import Batch, Forwarder
from skyfarer.testing.traces import segment
from skyfarer.wire.rpc import RPCS, Handling, Kind

RECORDS_MAX = 200
WAIT_S = 120.0


class Bench(Protocol):
    forwarder: Forwarder

    def held(self, kind: int) -> list[bytes]:
        """What the upstream has of that kind, each as often as it has it; in order of one key."""

    def prepare(self, kinds: Sequence[int]) -> None:
        """Makes the upstream ready for these, should that be quicker than letting it happen."""

    def leave(self) -> None:
        """The upstream takes nothing any more."""

    def come_back(self) -> None: ...

    def refused(self) -> bytes:
        """A payload that this upstream will never take."""


def segments(count: int, first: int = 0) -> list[bytes]:
    made = (
        segment("order", "order-1", "GET:/", 1_700_000_000_000 + number, 10)
        for number in range(first, first + count)
    )
    return [one.SerializeToString() for one in made]


def batch(payloads: list[bytes], first: int = 0, kind: int = Kind.SEGMENT) -> Batch:
    return Batch(first, kind, tuple(payloads))


def played(bench: Bench, scenario: Callable[[Forwarder], Awaitable[None]]) -> None:
    async def whole() -> None:
        forwarder = bench.forwarder
        await forwarder.start()
        try:
            async with asyncio.timeout(WAIT_S):
                await scenario(forwarder)
        finally:
            await forwarder.stop(1.0)

    asyncio.run(whole())


async def insisted(forwarder: Forwarder, sent: Batch) -> None:
    """As a sender does: the same batch until it is taken."""
    while True:
        try:
            await forwarder.send(sent)
        except RetryableError:
            await asyncio.sleep(0.05)
        else:
            return


async def settled(forwarder: Forwarder, sent: Batch) -> list[bytes]:
    """As a sender does with refusals: halves, until the refused stand alone. Those are returned."""
    waiting, lost = [sent], []
    while waiting:
        part = waiting.pop()
        try:
            await insisted(forwarder, part)
        except PermanentError:
            if len(part.payloads) > 1:
                waiting.extend(part.split(len(part.payloads) // 2)[::-1])
            else:
                lost.append(bytes(part.payloads[0]))
    return lost


class ForwarderContract:
    def test_what_is_sent_is_held_as_it_was(self, bench: Bench) -> None:
        sent = segments(RECORDS_MAX)

        async def scenario(forwarder: Forwarder) -> None:
            await insisted(forwarder, batch(sent))
            assert sorted(bench.held(Kind.SEGMENT)) == sorted(sent)

        played(bench, scenario)

    def test_views_are_taken_as_well_as_bytes(self, bench: Bench) -> None:
        sent = segments(3)

        async def scenario(forwarder: Forwarder) -> None:
            views = tuple(memoryview(bytearray(payload)) for payload in sent)
            await insisted(forwarder, Batch(0, Kind.SEGMENT, views))
            assert sorted(bench.held(Kind.SEGMENT)) == sorted(sent)

        played(bench, scenario)

    def test_every_kind_that_is_kept_can_be_sent(self, bench: Bench) -> None:
        kinds = sorted({rpc.kind for rpc in RPCS if rpc.handling is Handling.KEEP})
        bench.prepare(kinds)

        async def scenario(forwarder: Forwarder) -> None:
            for number, kind in enumerate(kinds):
                assert 1 <= forwarder.batch_max(kind) <= RECORDS_MAX
                await insisted(forwarder, batch([b"\x0a\x01a"], number, kind))

        played(bench, scenario)

    def test_a_number_that_is_no_kind_is_refused_for_good(self, bench: Bench) -> None:
        async def scenario(forwarder: Forwarder) -> None:
            assert forwarder.batch_max(9999) >= 1
            with pytest.raises(PermanentError, match="9999"):
                await forwarder.send(batch([b""], kind=9999))

        played(bench, scenario)

    def test_while_the_upstream_is_away_sending_fails_for_now_and_later_succeeds_once(
        self, bench: Bench
    ) -> None:
        sent = segments(20)

        async def scenario(forwarder: Forwarder) -> None:
            await insisted(forwarder, batch(sent[:5]))
            bench.leave()
            with pytest.raises(RetryableError):
                await forwarder.send(batch(sent[5:], first=5))
            bench.come_back()
            await insisted(forwarder, batch(sent[5:], first=5))
            assert sorted(bench.held(Kind.SEGMENT)) == sorted(sent)

        played(bench, scenario)

    def test_an_upstream_need_not_be_there_at_the_start(self, bench: Bench) -> None:
        sent = segments(2)
        bench.leave()

        async def scenario(forwarder: Forwarder) -> None:
            bench.come_back()
            await insisted(forwarder, batch(sent))
            assert sorted(bench.held(Kind.SEGMENT)) == sorted(sent)

        played(bench, scenario)

    def test_one_refused_record_costs_no_other_and_sends_no_other_twice(self, bench: Bench) -> None:
        good, bad = segments(40), bench.refused()

        async def scenario(forwarder: Forwarder) -> None:
            mixed = [*good[:17], bad, *good[17:]]
            assert await settled(forwarder, batch(mixed)) == [bad]
            assert sorted(bench.held(Kind.SEGMENT)) == sorted(good)

        played(bench, scenario)

    def test_what_filters_left_of_a_batch_and_made_beside_it_is_sent_as_any_other(
        self, bench: Bench
    ) -> None:
        sent = segments(6)

        async def scenario(forwarder: Forwarder) -> None:
            kept = Batch(10, Kind.SEGMENT, tuple(sent[:3]), kept=(11, 12, 19), beyond=20)
            await insisted(forwarder, kept)
            made = Batch(11, Kind.SEGMENT, tuple(sent[3:5]), emitted=True)
            await insisted(forwarder, made)
            await insisted(forwarder, batch(sent[5:], first=20))
            assert sorted(bench.held(Kind.SEGMENT)) == sorted(sent)

        played(bench, scenario)

    def test_stopping_is_safe_twice_and_unstarted_and_while_the_upstream_is_away(
        self, bench: Bench
    ) -> None:
        async def scenario() -> None:
            forwarder = bench.forwarder
            await forwarder.stop(1.0)
            await forwarder.start()
            bench.leave()
            sending = asyncio.create_task(forwarder.send(batch(segments(3))))
            await asyncio.sleep(0.1)
            sending.cancel()
            await asyncio.wait({sending})
            await forwarder.stop(1.0)
            await forwarder.stop(1.0)
            with pytest.raises(RetryableError):
                await forwarder.send(batch(segments(1)))

        asyncio.run(asyncio.wait_for(scenario(), WAIT_S))
        bench.come_back()

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from satellite.bench import PING, SEGMENT, Bench, Script, run
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.satellite.attempts import RetrySettings
from skyfarer.satellite.contracts import AccessDenied, Batch, Unexplained
from skyfarer.testing.clock import HandClock
from skyfarer.wire.messages import InstancePingPkg

PAYLOADS = [InstancePingPkg(service=f"s{n}").SerializeToString() for n in range(100)]


def unexplained_for(*numbers: int) -> Callable[[Batch], None]:
    def outcome(batch: Batch) -> None:
        if set(numbers).intersection(batch.numbers):
            raise Unexplained("INTERNAL: something went wrong")

    return outcome


def test_a_batch_is_tried_for_ever_unless_told_otherwise(tmp_path: Path) -> None:
    clock = HandClock()

    def down(batch: Batch) -> None:
        clock.seconds += 3600
        if clock.seconds < 50 * 3600:
            raise RetryableError("down")

    script = Script(down)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"a"])
        await bench.settled(1)
        assert bench.backlog.ledger().delivered == 1

    run(Bench(tmp_path, script, clock=clock), work)

    assert len(script.tried) == 50


@pytest.mark.parametrize("decision", ["park", "drop"])
def test_a_batch_whose_time_is_over_is_given_up_and_counted(tmp_path: Path, decision: str) -> None:
    clock = HandClock()

    def down(batch: Batch) -> None:
        clock.seconds += 10
        if batch.first == 0:
            raise RetryableError("down")

    script = Script(down)
    retry = RetrySettings(elapsed_max_s=35, on_exhausted=decision)  # type: ignore[arg-type]
    bench = Bench(tmp_path, script, retry=retry, clock=clock, records_max=3)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"a", b"b", b"c", b"d"])
        await bench.settled(4)
        ledger = bench.backlog.ledger()
        assert (ledger.delivered, ledger.dropped) == (1, {"exhausted": 3})

    run(bench, work)

    assert [batch.first for batch in script.tried] == [0] * 5 + [3]
    parked = [(0, b"a"), (1, b"b"), (2, b"c")] if decision == "park" else []
    assert bench.parked() == parked


def test_the_time_of_a_batch_begins_when_it_first_fails(tmp_path: Path) -> None:
    clock = HandClock()
    answers = [RetryableError("down")] * 3

    def outcome(batch: Batch) -> None:
        clock.seconds += 4
        if batch.first % 2 and answers:
            raise answers.pop()

    async def work(bench: Bench) -> None:
        bench.backlog.append(PING, PAYLOADS[:20])
        await bench.settled(20)
        assert bench.backlog.ledger().dropped == {}

    run(Bench(tmp_path, Script(outcome), retry=RetrySettings(elapsed_max_s=10), clock=clock), work)


def test_refused_credentials_keep_the_data_whatever_the_time_and_raise_an_alarm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, refusals = HandClock(), 20
    seen: list[float] = []

    def outcome(batch: Batch) -> None:
        nonlocal refusals
        seen.append(bench.metric("sender_access_denied{"))
        clock.seconds += 60
        refusals -= 1
        if refusals:
            raise AccessDenied("UNAUTHENTICATED: token expired")

    retry = RetrySettings(elapsed_max_s=100, denied_pause_s=0.001)
    bench = Bench(tmp_path, Script(outcome), retry=retry, clock=clock)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"a", b"b"])
        await bench.settled(2)
        assert bench.backlog.ledger().delivered == 2

    run(bench, work)

    assert seen == [0] + [1] * 19
    assert bench.metric("sender_access_denied{") == 0
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "credentials" in errors[0].getMessage()


def test_refused_credentials_are_not_tried_again_before_the_pause_is_over(tmp_path: Path) -> None:
    def denied(batch: Batch) -> None:
        raise AccessDenied("UNAUTHENTICATED")

    script = Script(denied)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"a"])
        await bench.until(lambda: bool(script.tried))
        await asyncio.sleep(0.2)
        assert len(script.tried) == 1
        await bench.sender.stop(2.0)
        assert len(script.tried) == 2

    run(Bench(tmp_path, script, retry=RetrySettings(denied_pause_s=3600)), work)


@pytest.mark.parametrize("poison", [{0}, {99}, {40}, {0, 1, 2}, {97, 98, 99}, {3, 50, 51, 90}])
def test_records_that_fail_without_a_reason_are_found_and_do_not_block_the_others(
    tmp_path: Path, poison: set[int]
) -> None:
    script = Script(unexplained_for(*poison))
    bench = Bench(tmp_path, script)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, PAYLOADS)
        bench.backlog.append(SEGMENT, [PAYLOADS[0]])
        await bench.settled(101)
        ledger = bench.backlog.ledger()
        assert (ledger.delivered, ledger.dropped) == (101 - len(poison), {"rejected": len(poison)})

    run(bench, work)

    assert [number for number, _ in bench.parked()] == sorted(poison)
    assert len(set(script.payloads())) >= 100 - len(poison)


def test_numbers_reach_the_upstream_in_ascending_order_even_while_it_searches(
    tmp_path: Path,
) -> None:
    script = Script(unexplained_for(5, 6, 30))
    taken: list[int] = []

    def outcome(batch: Batch) -> None:
        unexplained_for(5, 6, 30)(batch)
        taken.extend(batch.numbers)

    script.outcome = outcome

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, PAYLOADS[:40])
        await bench.settled(40)

    run(Bench(tmp_path, script), work)

    assert taken == [n for n in range(40) if n not in (5, 6, 30)]


def test_an_upstream_that_fails_with_everything_costs_no_record(tmp_path: Path) -> None:
    failing = True

    def outcome(batch: Batch) -> None:
        if failing:
            raise Unexplained("INTERNAL: storage is down")

    script = Script(outcome)

    async def work(bench: Bench) -> None:
        nonlocal failing
        bench.backlog.append(SEGMENT, PAYLOADS[:20])
        bench.backlog.append(PING, PAYLOADS[20:25])
        await bench.until(lambda: len(script.tried) > 200)
        assert bench.backlog.ledger().queued == 25
        failing = False
        await bench.settled(25)
        assert bench.backlog.ledger().delivered == 25

    run(Bench(tmp_path, script), work)


def test_a_suspect_at_the_end_waits_for_one_behind_it_and_blocks_nobody(tmp_path: Path) -> None:
    script = Script(unexplained_for(0))
    bench = Bench(tmp_path, script)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, PAYLOADS[:1])
        await bench.until(lambda: len(script.tried) > 20)
        assert bench.backlog.ledger().queued == 1
        bench.backlog.append(PING, PAYLOADS[1:2])
        await bench.settled(2)
        assert bench.backlog.ledger().dropped == {"rejected": 1}

    run(bench, work)

    assert bench.parked() == [(0, PAYLOADS[0])]


def test_bytes_that_are_no_message_are_given_up_without_further_evidence(tmp_path: Path) -> None:
    script = Script(unexplained_for(0, 1, 2))
    bench = Bench(tmp_path, script)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"\x0a\xff"] * 3)
        await bench.settled(3)

    run(bench, work)

    assert [number for number, _ in bench.parked()] == [0, 1, 2]


def test_an_outage_in_the_middle_of_the_search_gives_nothing_up(tmp_path: Path) -> None:
    def outcome(batch: Batch) -> None:
        if len(script.tried) > 12:
            raise RetryableError("connection refused")
        raise Unexplained("INTERNAL")

    script = Script(outcome)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, PAYLOADS[:30])
        await bench.until(lambda: len(script.tried) > 60)
        assert bench.backlog.ledger().queued == 30

    run(Bench(tmp_path, script), work)


def test_a_refusal_for_good_needs_no_evidence(tmp_path: Path) -> None:
    def refuse(batch: Batch) -> None:
        raise PermanentError("INVALID_ARGUMENT")

    bench = Bench(tmp_path, Script(refuse))

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, PAYLOADS[:5])
        await bench.settled(5)
        assert bench.backlog.ledger().dropped == {"rejected": 5}

    run(bench, work)

    assert bench.metric("sender_parked_total{") == 5

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from satellite.bench import PING, SEGMENT, Bench, Script, run
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import KIB
from skyfarer.satellite.contracts import Batch


def test_consecutive_records_of_one_kind_share_a_batch_and_order_is_kept(tmp_path: Path) -> None:
    script = Script()

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"a", b"b"])
        bench.backlog.append(PING, [b"p", b"q"])
        bench.backlog.append(SEGMENT, [b"c"])
        await bench.settled(5)

    run(Bench(tmp_path, script), work)

    assert script.taken == [
        (0, SEGMENT, [b"a", b"b"]),
        (2, PING, [b"p"]),
        (3, PING, [b"q"]),
        (4, SEGMENT, [b"c"]),
    ]


def test_batches_are_bounded_by_count_and_by_bytes(tmp_path: Path) -> None:
    script = Script()

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"s"] * 25)
        bench.backlog.append(SEGMENT, [b"x" * 10 * KIB] * 5)
        await bench.settled(30)

    run(Bench(tmp_path, script, records_max=10, bytes_max=30 * KIB), work)

    assert all(len(payloads) <= 10 for _, _, payloads in script.taken)
    assert all(sum(map(len, payloads)) <= 30 * KIB for _, _, payloads in script.taken)
    assert sum(len(payloads) for _, _, payloads in script.taken) == 30


def test_what_a_full_batch_left_behind_counts_towards_the_next(tmp_path: Path) -> None:
    script = Script()

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"x" * KIB] * 9)
        await bench.settled(9)

    run(Bench(tmp_path, script, bytes_max=3 * KIB, age_max_s=3600.0), work)

    assert [len(payloads) for _, _, payloads in script.taken] == [3, 3, 3]


def test_a_batch_waits_for_company_until_it_is_full(tmp_path: Path) -> None:
    script = Script()

    async def work(bench: Bench) -> None:
        for number in range(10):
            bench.backlog.append(SEGMENT, [str(number).encode()])
            await asyncio.sleep(0)
        await bench.settled(10)

    run(Bench(tmp_path, script, records_max=10, age_max_s=3600.0), work)

    assert len(script.taken) == 1


def test_what_fails_for_now_is_not_committed_and_sent_again_as_it_was(tmp_path: Path) -> None:
    bench: Bench
    committed: list[int] = []

    def fail_thrice(batch: Batch) -> None:
        committed.append(bench.backlog.committed)
        if len(committed) <= 3:
            raise RetryableError("not now")

    script = Script(fail_thrice)
    bench = Bench(tmp_path, script)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"a", b"b"])
        await bench.settled(2)

    run(bench, work)

    assert committed == [0, 0, 0, 0]
    assert [(batch.first, len(batch.payloads)) for batch in script.tried] == [(0, 2)] * 4


def test_halving_tries_only_what_it_must_and_commits_in_order(tmp_path: Path) -> None:
    def refuse(batch: Batch) -> None:
        if b"bad" in [bytes(one) for one in batch.payloads]:
            raise PermanentError("bad")

    script = Script(refuse)
    bench = Bench(tmp_path, script)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"bad" if n == 5 else b"good" for n in range(8)])
        await bench.settled(8)
        assert bench.backlog.ledger().dropped == {"rejected": 1}

    run(bench, work)

    assert [(batch.first, batch.end) for batch in script.tried] == [
        (0, 8),
        (0, 4),
        (4, 8),
        (4, 6),
        (4, 5),
        (5, 6),
        (6, 8),
    ]


def test_a_defect_in_sending_is_reported_as_ill_health_and_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scores: list[int] = []
    bench: Bench

    def break_once(batch: Batch) -> None:
        scores.append(bench.health.score())
        if len(scores) == 1:
            raise RuntimeError("a defect")

    script = Script(break_once)
    bench = Bench(tmp_path, script)

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"a"])
        await bench.settled(1)
        bench.backlog.append(SEGMENT, [b"b"])
        await bench.settled(2)

    run(bench, work)

    assert [payloads for _, _, payloads in script.taken] == [[b"a"], [b"b"]]
    assert scores == [0, 1, 0]
    assert "a defect" in caplog.text


def test_a_damaged_record_is_counted_and_those_around_it_are_delivered(tmp_path: Path) -> None:
    script = Script()
    bench = Bench(tmp_path, script)
    marker = b"this record will be damaged"
    bench.backlog.start()
    bench.backlog.append(SEGMENT, [b"before", marker, b"after"])
    bench.backlog.stop(0.0)
    for file in (tmp_path / "queue").iterdir():
        content = file.read_bytes()
        if marker in content:
            file.write_bytes(content.replace(marker, marker.upper()))

    async def work(bench: Bench) -> None:
        await bench.settled(3)
        ledger = bench.backlog.ledger()
        assert ledger.balanced
        assert (ledger.delivered, sum(ledger.dropped.values())) == (2, 1)

    run(Bench(tmp_path, script), work)

    assert [one for _, _, payloads in script.taken for one in payloads] == [b"before", b"after"]


def test_stop_gives_up_at_its_time_and_keeps_what_is_queued(tmp_path: Path) -> None:
    def never(batch: Batch) -> None:
        raise RetryableError("down")

    bench = Bench(tmp_path, Script(never))

    async def work(bench: Bench) -> None:
        bench.backlog.append(SEGMENT, [b"a"])
        await bench.sender.stop(0.1)
        await bench.sender.stop(0.1)
        assert bench.backlog.ledger().queued == 1

    run(bench, work)

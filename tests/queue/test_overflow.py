"""drop_oldest: what gives way is counted, once, whoever dies when."""

from __future__ import annotations

import pytest

from skyfarer.queue.run import OVERFLOW


def drain(bench, consumer):
    """The loop every consumer has; returns what it delivered."""
    reader, delivered = bench.reader(), []
    for run in reader.runs(consumer.committed(), reader.writing()):
        delivered += map(bytes, run.payloads())
        consumer.commit(run.end, run.dropped)
    return delivered


def payloads(first, count):
    return [b"%05d" % n * 700 for n in range(first, first + count)]


def test_the_oldest_segment_gives_way_and_its_records_are_counted(bench):
    writer = bench.writer(when_full="drop_oldest")
    for n in range(20):
        writer.append(1, payloads(n, 1))
    assert writer.oldest == writer.dropped == 12
    consumer = bench.consumer()
    assert drain(bench, consumer) == payloads(12, 8)
    assert consumer.committed() == 20
    assert consumer.dropped() == {OVERFLOW: 12}
    assert writer.dropped == 12


def test_numbers_overwritten_come_as_one_run_before_the_first_record(bench):
    writer = bench.writer(when_full="drop_oldest")
    writer.append(1, payloads(0, 6))
    writer.append(1, payloads(6, 6))
    gap, *rest = bench.runs(1)
    assert (gap.first, gap.end, gap.dropped, gap.payloads()) == (1, 4, {OVERFLOW: 3}, [])
    assert gap.kinds() == [] and list(gap.sequences()) == []
    assert rest[0].first == 4


def test_dropped_counts_the_consumer_that_lost_most(bench):
    writer = bench.writer(when_full="drop_oldest", consumers=("fast", "slow"))
    writer.append(1, payloads(0, 4))
    writer.append(1, payloads(4, 4))
    bench.consumer("fast").commit(8)
    writer.append(1, payloads(8, 2))
    assert writer.dropped == 2


def test_dropped_survives_a_restart_of_everyone(bench):
    writer = bench.writer(when_full="drop_oldest")
    for n in range(12):
        writer.append(1, payloads(n, 1))
    consumer = bench.consumer()
    drain(bench, consumer)
    for n in range(12, 24):
        writer.append(1, payloads(n, 1))
    before = writer.dropped
    assert before == 4 + 4
    writer.stop(1.0)
    consumer.stop()
    writer, consumer = bench.writer(when_full="drop_oldest"), bench.consumer()
    assert writer.dropped == before
    delivered = drain(bench, consumer)
    assert consumer.committed() - 12 == len(delivered) + 4
    assert consumer.dropped() == {OVERFLOW: before}


def test_a_run_in_hand_keeps_its_bytes_while_its_segment_is_given_up(bench):
    writer, reader = bench.writer(when_full="drop_oldest"), bench.reader()
    writer.append(1, payloads(0, 2))
    [run] = reader.runs(0, 2)
    for n in range(2, 30):
        writer.append(1, payloads(n, 1))
    assert writer.oldest > run.end
    assert [bytes(payload) for payload in run.payloads()] == payloads(0, 2)


def test_what_was_in_hand_is_delivered_and_not_counted_as_dropped(bench):
    writer, consumer = bench.writer(when_full="drop_oldest"), bench.consumer()
    writer.append(1, payloads(0, 2))
    [run] = bench.runs()
    for n in range(2, 12):
        writer.append(1, payloads(n, 1))
    assert writer.dropped == writer.oldest == 4
    consumer.commit(run.end, run.dropped)
    assert writer.dropped == 2
    drain(bench, consumer)
    assert consumer.dropped() == {OVERFLOW: 2}


@pytest.mark.parametrize("batch", [1, 3, 5])
def test_accepted_is_delivered_and_dropped_when_drained(bench, batch):
    writer, consumer = bench.writer(when_full="drop_oldest"), bench.consumer()
    delivered = 0
    for round_number in range(12):
        for _ in range(round_number % 5):
            writer.append(1, payloads(writer.writing, batch))
        if round_number % 3 == 0:
            delivered += len(drain(bench, consumer))
    delivered += len(drain(bench, consumer))
    assert writer.writing == delivered + sum(consumer.dropped().values())

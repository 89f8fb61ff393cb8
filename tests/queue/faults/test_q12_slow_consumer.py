"""Q12: a consumer that stands still while ten times the capacity arrives.

accepted = delivered + queued + dropped, to the record, before and after a restart; what a consumer
has not committed is never overwritten under "reject", and given up in whole, counted records under
"drop_oldest".
"""

from __future__ import annotations

import pytest

from skyfarer.queue.errors import QueueFull

CAPACITY_BYTES = 64 * 1024
TIMES = 10


def body(sequence: int) -> bytes:
    return b"%06d" % sequence * (20 + sequence % 50)


def drain(bench, consumer) -> list[int]:
    """Numbers delivered, each checked against what it was."""
    reader, delivered = bench.reader(), []
    for run in reader.runs(consumer.committed(), reader.writing()):
        for sequence, payload in zip(run.sequences(), run.payloads(), strict=True):
            assert payload == body(sequence)
            delivered.append(sequence)
        consumer.commit(run.end, run.dropped)
    return delivered


def offer(writer) -> tuple[int, int]:
    """Records accepted and refusals met while ten times the capacity is offered."""
    offered = refused = 0
    before = writer.writing
    while offered < TIMES * CAPACITY_BYTES:
        payload = body(writer.writing)
        try:
            writer.append(1, [payload])
        except QueueFull:
            refused += 1
        offered += len(payload)
    return writer.writing - before, refused


def test_q12_reject_refuses_what_is_new_and_keeps_every_uncommitted_record(bench):
    writer, consumer = bench.writer(when_full="reject"), bench.consumer()
    writer.append(1, [body(n) for n in range(3)])
    assert drain(bench, consumer) == [0, 1, 2]
    accepted, refused = offer(writer)
    assert refused > accepted > 0
    assert (writer.dropped, consumer.committed()) == (0, 3)
    delivered = drain(bench, consumer)
    assert delivered == list(range(3, 3 + accepted))
    assert (consumer.committed(), consumer.dropped()) == (writer.writing, {})
    assert offer(writer)[0] > 0


@pytest.mark.parametrize("restart", [False, True])
def test_q12_drop_oldest_gives_up_whole_records_and_counts_each(bench, restart):
    writer, consumer = bench.writer(when_full="drop_oldest"), bench.consumer()
    writer.append(1, [body(n) for n in range(3)])
    assert drain(bench, consumer) == [0, 1, 2]
    accepted, refused = offer(writer)
    gone = writer.oldest - consumer.committed()
    assert refused == 0
    assert writer.dropped == gone > 0
    if restart:
        bench.close()
        writer, consumer = bench.writer(when_full="drop_oldest"), bench.consumer()
        assert writer.dropped == gone
    delivered = drain(bench, consumer)
    assert delivered == list(range(writer.oldest, writer.writing))
    assert consumer.dropped() == {"overflow": gone}
    assert writer.dropped == gone
    assert 3 + accepted == writer.writing == 3 + len(delivered) + gone


def test_q12_one_consumer_standing_still_holds_the_ring_for_all(bench):
    """Fullness is against what every consumer has committed, not against what was read."""
    writer = bench.writer(consumers=("fast", "still"))
    fast, still = bench.consumer("fast"), bench.consumer("still")
    delivered: list[int] = []
    refused = 0
    for _ in range(TIMES):
        refused += offer(writer)[1]
        delivered += drain(bench, fast)
    assert delivered == list(range(writer.writing))
    assert refused > 0
    assert drain(bench, still) == delivered
    assert offer(writer)[0] > 0

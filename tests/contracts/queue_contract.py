"""What every queue must do. An implementation's test file subclasses and gives `make_queue`.

`make_queue(**changes)` gives a queue of some 64 KiB for records of up to 4 KiB, with nothing
started; `changes` are settings by name. It is called once a test.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Protocol

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.queue.checkpoint import REASONS_MAX
from skyfarer.queue.contracts import AnyConsumer, AnyReader, AnyWriter
from skyfarer.queue.errors import QueueFull, QueueLocked, QueueMissing, RecordTooLarge
from skyfarer.queue.records import KIND_MAX
from skyfarer.queue.run import OVERFLOW, Run

RECORD_BYTES_MAX = 4096
PLENTY_S = 60.0


class AnyQueue(Protocol):
    @property
    def writer(self) -> AnyWriter: ...

    def reader(self) -> AnyReader: ...

    def consumer(self, name: str = "main") -> AnyConsumer: ...


MakeQueue = Callable[..., AnyQueue]


def payload(number: int, size: int = 3500) -> bytes:
    return (b"%d/" % number * size)[:size]


def payloads(first: int, count: int, size: int = 3500) -> list[bytes]:
    return [payload(number, size) for number in range(first, first + count)]


def started(queue: AnyQueue, name: str = "main") -> tuple[AnyWriter, AnyReader, AnyConsumer]:
    parts = (queue.writer, queue.reader(), queue.consumer(name))
    for part in parts:
        part.start()
    return parts


def consumer_of(queue: AnyQueue, name: str) -> AnyConsumer:
    consumer = queue.consumer(name)
    consumer.start()
    return consumer


def fill(writer: AnyWriter) -> int:
    """Until there is no room; how many records there are then."""
    with pytest.raises(QueueFull):
        while True:
            writer.append(1, payloads(writer.writing, 1))
    return writer.writing


def contents(runs: Iterator[Run]) -> list[bytes]:
    return [bytes(view) for run in runs for view in run.payloads()]


def drain(reader: AnyReader, consumer: AnyConsumer) -> list[bytes]:
    """The loop every consumer has; what it delivered."""
    delivered = []
    for run in reader.runs(consumer.committed(), reader.writing()):
        delivered += [bytes(view) for view in run.payloads()]
        consumer.commit(run.end, run.dropped)
    return delivered


class Appending:
    def test_records_are_numbered_from_zero_without_a_gap(self, make_queue: MakeQueue) -> None:
        writer, reader, _ = started(make_queue())
        assert (writer.writing, writer.oldest, writer.dropped) == (0, 0, 0)
        assert [writer.append(1, payloads(0, count, 10)) for count in (1, 3, 1)] == [0, 1, 4]
        assert writer.writing == reader.writing() == 5

    def test_records_come_back_byte_for_byte_with_their_kinds(self, make_queue: MakeQueue) -> None:
        writer, reader, _ = started(make_queue())
        sizes = [0, 1, 7, RECORD_BYTES_MAX, 0, 255]
        sent = [payload(n, size) for n, size in enumerate(sizes)]
        writer.append(KIND_MAX, sent[:3])
        writer.append(1, sent[3:])
        runs = list(reader.runs(0, 6))
        assert contents(iter(runs)) == sent
        assert [kind for run in runs for kind in run.kinds()] == [KIND_MAX] * 3 + [1] * 3
        assert [number for run in runs for number in run.sequences()] == list(range(6))

    def test_no_payloads_are_no_record(self, make_queue: MakeQueue) -> None:
        writer, reader, _ = started(make_queue())
        writer.append(1, [b"a"])
        assert writer.append(1, []) == writer.writing == reader.writing() == 1

    def test_buffers_are_the_callers_again_after_an_append(self, make_queue: MakeQueue) -> None:
        writer, reader, _ = started(make_queue())
        buffer = bytearray(b"before")
        writer.append(1, [memoryview(buffer)])
        buffer[:] = b"after!"
        assert contents(reader.runs(0, 1)) == [b"before"]

    @pytest.mark.parametrize("beside", [0, 1, 3])
    def test_a_view_whose_items_are_larger_than_a_byte_is_refused(
        self, make_queue: MakeQueue, beside: int
    ) -> None:
        writer, reader, _ = started(make_queue())
        writer.append(1, payloads(0, 1))
        with pytest.raises(PermanentError, match="must be bytes"):
            writer.append(1, [*payloads(1, beside), memoryview(bytes(3000)).cast("Q")])
        assert writer.append(1, payloads(1, 1)) == 1
        assert contents(reader.runs(0, 2)) == payloads(0, 2)

    def test_a_record_above_the_maximum_is_refused_with_its_batch(
        self, make_queue: MakeQueue
    ) -> None:
        writer, reader, _ = started(make_queue())
        with pytest.raises(RecordTooLarge, match="record_bytes_max"):
            writer.append(1, [b"small", bytes(RECORD_BYTES_MAX + 1)])
        assert writer.writing == reader.writing() == 0

    @pytest.mark.parametrize("policy", ["reject", "drop_oldest"])
    def test_a_batch_no_empty_queue_could_hold_is_refused_and_nothing_given_up_for_it(
        self, make_queue: MakeQueue, policy: str
    ) -> None:
        writer, reader, _ = started(make_queue(when_full=policy))
        writer.append(1, [b"kept"])
        with pytest.raises(RecordTooLarge):
            writer.append(1, payloads(0, 20))
        assert (writer.writing, writer.oldest) == (1, 0)
        assert contents(reader.runs(0, 9)) == [b"kept"]

    @pytest.mark.parametrize("kind", [0, -1, KIND_MAX + 1])
    def test_a_kind_out_of_bounds_is_refused(self, make_queue: MakeQueue, kind: int) -> None:
        writer, _, _ = started(make_queue())
        with pytest.raises(PermanentError, match="kind"):
            writer.append(kind, [b"x"])
        assert writer.writing == 0

    def test_append_needs_a_started_writer(self, make_queue: MakeQueue) -> None:
        writer = make_queue().writer
        for _ in range(2):
            writer.stop(0.0)
            with pytest.raises(PermanentError, match="before start"):
                writer.append(1, [b"x"])
            writer.start()
            writer.start()
            writer.append(1, [b"x"])
        assert writer.writing == 2
        writer.stop(0.0)
        assert (writer.writing, writer.oldest) == (2, 0)


class Reading:
    @pytest.mark.parametrize("bytes_max", [1, 700, 1500, 10**9])
    def test_runs_tile_whatever_range_is_asked_for(
        self, make_queue: MakeQueue, bytes_max: int
    ) -> None:
        writer, reader, _ = started(make_queue())
        sent = payloads(0, 24, 700)
        writer.append(1, sent)
        for start, end in ((0, 24), (5, 17), (23, 99), (24, 99), (7, 7), (9, 3)):
            runs = list(reader.runs(start, end, bytes_max))
            assert contents(iter(runs)) == sent[start:end]
            if runs:
                assert (runs[0].first, runs[-1].end) == (start, min(end, 24))
            assert all(before.end == after.first for before, after in pairwise(runs))
            assert all(run.count == 1 or run.count * 700 <= bytes_max for run in runs)

    def test_payloads_of_a_run_lie_back_to_back_where_its_index_says(
        self, make_queue: MakeQueue
    ) -> None:
        writer, reader, _ = started(make_queue())
        writer.append(1, [b"one", b"", b"three"])
        writer.append(2, [b"four"])
        [run] = reader.runs(1, 4)
        starts, lengths, kinds = (run.index.cast("I")[word::5].tolist() for word in range(3))
        ends = [start + length for start, length in zip(starts, lengths, strict=True)]
        assert (lengths, kinds, starts[1:]) == ([0, 5, 4], [1, 1, 2], ends[:-1])
        assert bytes(run.data[starts[0] : ends[-1]]) == b"threefour"
        assert run.index.readonly and run.data.readonly

    def test_a_reader_sees_what_is_appended_after_it_started(self, make_queue: MakeQueue) -> None:
        writer, reader, _ = started(make_queue())
        for number in range(5):
            writer.append(1, payloads(number, 1))
            assert contents(reader.runs(number, reader.writing())) == payloads(number, 1)

    def test_runs_in_hand_stay_readable_after_stop(self, make_queue: MakeQueue) -> None:
        writer, reader, _ = started(make_queue())
        writer.append(1, [b"here"])
        runs = list(reader.runs(0, 1))
        reader.stop(0.0)
        writer.stop(0.0)
        assert contents(iter(runs)) == [b"here"]

    def test_reading_needs_a_started_reader(self, make_queue: MakeQueue) -> None:
        queue = make_queue()
        reader = queue.reader()
        reader.stop(0.0)
        with pytest.raises(QueueMissing):
            reader.start()
        queue.writer.start()
        reader.start()
        reader.start()
        reader.stop(0.0)
        reader.stop(0.0)
        for question in (reader.writing, reader.oldest, lambda: list(reader.runs(0, 1))):
            with pytest.raises(PermanentError, match="before start or after stop"):
                question()

    def test_waiting_no_time_only_looks(self, make_queue: MakeQueue) -> None:
        writer, reader, _ = started(make_queue())
        assert not reader.wait(0, 0.0)
        writer.append(1, [b"x"])
        assert reader.wait(0, 0.0)
        assert not reader.wait(1, 0.0)

    def test_who_waits_is_woken_by_an_append(self, make_queue: MakeQueue) -> None:
        writer, reader, _ = started(make_queue())
        woken: list[bool] = []
        waiting = threading.Thread(target=lambda: woken.append(reader.wait(1, PLENTY_S)))
        waiting.start()
        writer.append(1, [b"not enough"])
        writer.append(1, [b"enough"])
        waiting.join()
        assert woken == [True]


class Overflowing:
    def test_a_full_queue_rejects_the_batch_until_there_is_a_commit(
        self, make_queue: MakeQueue
    ) -> None:
        writer, reader, consumer = started(make_queue())
        held = fill(writer)
        assert (writer.oldest, writer.dropped) == (0, 0)
        assert drain(reader, consumer) == payloads(0, held)
        assert writer.append(1, payloads(held, 1)) == held
        assert drain(reader, consumer) == payloads(held, 1)
        assert consumer.dropped() == {}

    def test_a_full_queue_waits_for_the_slowest_of_its_consumers(
        self, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(consumers=("fast", "slow"))
        writer, reader, fast = started(queue, "fast")
        held = fill(writer)
        drain(reader, fast)
        with pytest.raises(QueueFull):
            writer.append(1, payloads(held, 1))
        slow = consumer_of(queue, "slow")
        assert drain(reader, slow) == payloads(0, held)
        assert writer.append(1, payloads(held, 1)) == held

    def test_a_blocked_writer_goes_on_when_there_is_a_commit(self, make_queue: MakeQueue) -> None:
        writer, reader, consumer = started(make_queue(when_full="block", block_timeout_s=PLENTY_S))
        count = 60
        appended: list[int] = []
        writing = threading.Thread(
            target=lambda: appended.extend(
                writer.append(1, payloads(number, 1)) for number in range(count)
            )
        )
        writing.start()
        delivered: list[bytes] = []
        while consumer.committed() < count:
            delivered += drain(reader, consumer)
        writing.join()
        assert appended == list(range(count))
        assert delivered == payloads(0, count)

    def test_a_blocked_writer_is_refused_in_the_end(self, make_queue: MakeQueue) -> None:
        writer, reader, consumer = started(make_queue(when_full="block", block_timeout_s=0.01))
        held = fill(writer)
        assert (writer.oldest, writer.dropped) == (0, 0)
        assert drain(reader, consumer) == payloads(0, held)
        assert writer.append(1, payloads(held, 1)) == held

    def test_the_oldest_records_give_way_and_come_as_one_run_of_lost_numbers(
        self, make_queue: MakeQueue
    ) -> None:
        writer, reader, consumer = started(make_queue(when_full="drop_oldest"))
        for number in range(40):
            writer.append(1, payloads(number, 1))
        oldest = writer.oldest
        assert 0 < oldest == reader.oldest() == writer.dropped < 40
        gap, *rest = reader.runs(2, 40)
        assert (gap.first, gap.end, gap.dropped) == (2, oldest, {OVERFLOW: oldest - 2})
        assert (gap.payloads(), gap.kinds(), list(gap.sequences())) == ([], [], [])
        assert contents(iter(rest)) == payloads(oldest, 40 - oldest)
        assert drain(reader, consumer) == payloads(oldest, 40 - oldest)
        assert (consumer.committed(), consumer.dropped()) == (40, {OVERFLOW: oldest})
        assert writer.dropped == oldest

    def test_what_is_in_hand_keeps_its_bytes_and_is_delivered_after_all(
        self, make_queue: MakeQueue
    ) -> None:
        writer, reader, consumer = started(make_queue(when_full="drop_oldest"))
        writer.append(1, payloads(0, 2))
        [run] = reader.runs(0, 2)
        for number in range(2, 30):
            writer.append(1, payloads(number, 1))
        before = writer.dropped
        assert before == writer.oldest > run.end
        assert contents(iter([run])) == payloads(0, 2)
        consumer.commit(run.end, run.dropped)
        assert writer.dropped == before - 2
        drain(reader, consumer)
        assert consumer.dropped() == {OVERFLOW: before - 2}

    def test_dropped_counts_the_consumer_that_lost_most(self, make_queue: MakeQueue) -> None:
        queue = make_queue(when_full="drop_oldest", consumers=("fast", "slow"))
        writer, reader, fast = started(queue, "fast")
        for number in range(30):
            writer.append(1, payloads(number, 1))
            drain(reader, fast)
        assert fast.dropped() == {}
        assert writer.dropped == writer.oldest > 0

    @pytest.mark.parametrize("policy", ["reject", "drop_oldest"])
    @pytest.mark.parametrize("seed", range(5))
    def test_accepted_is_delivered_and_queued_and_dropped_at_any_time(
        self, make_queue: MakeQueue, policy: str, seed: int
    ) -> None:
        writer, reader, consumer = started(make_queue(when_full=policy))
        chance, delivered, refused = random.Random(seed), 0, 0
        for _ in range(200):
            try:
                size = chance.randrange(RECORD_BYTES_MAX)
                writer.append(1, payloads(writer.writing, chance.randrange(4), size))
            except QueueFull:
                refused += 1
            if chance.random() < 0.1:
                delivered += len(drain(reader, consumer))
            queued = writer.writing - consumer.committed()
            dropped = sum(consumer.dropped().values())
            assert writer.writing == delivered + queued + dropped
            assert writer.dropped == dropped + max(0, writer.oldest - consumer.committed())
        assert (refused > 0, writer.dropped > 0) == (policy == "reject", policy == "drop_oldest")


class Committing:
    def test_a_place_and_its_counts_are_there_for_the_next_of_that_name(
        self, make_queue: MakeQueue
    ) -> None:
        queue = make_queue()
        writer, _, consumer = started(queue)
        writer.append(1, [b"x"] * 10)
        assert (consumer.committed(), consumer.dropped()) == (0, {})
        consumer.commit(3, {"corrupt": 1})
        consumer.commit(7, {"corrupt": 1, "rejected": 2})
        consumer.stop(0.0)
        assert consumer.committed() == 7
        again = consumer_of(queue, "main")
        assert (again.committed(), again.dropped()) == (7, {"corrupt": 2, "rejected": 2})
        again.dropped()["corrupt"] = 9
        assert again.dropped()["corrupt"] == 2

    @pytest.mark.parametrize(
        ("sequence", "dropped", "words"),
        [
            (4, {}, "cannot commit 4"),
            (11, {}, "the written 10"),
            (6, {"corrupt": 7}, "not a count of passed records"),
            (6, {"corrupt": -1}, "not a count of passed records"),
            (6, {"r" * 33: 1}, "drop reason"),
        ],
    )
    def test_a_commit_that_makes_no_sense_moves_nothing(
        self, make_queue: MakeQueue, sequence: int, dropped: dict[str, int], words: str
    ) -> None:
        writer, _, consumer = started(make_queue())
        writer.append(1, [b"x"] * 10)
        consumer.commit(5)
        consumer.commit(5)
        with pytest.raises(PermanentError, match=words):
            consumer.commit(sequence, dropped)
        assert (consumer.committed(), consumer.dropped()) == (5, {})

    def test_reasons_are_bounded_and_the_rest_is_summed_up(self, make_queue: MakeQueue) -> None:
        writer, _, consumer = started(make_queue())
        writer.append(1, [b"x"] * 50)
        for number in range(50):
            consumer.commit(number + 1, {f"reason-{number}": 1})
        assert len(consumer.dropped()) == REASONS_MAX
        assert consumer.dropped()["other"] == 50 - REASONS_MAX + 1

    def test_a_name_has_one_user_and_must_be_declared(self, make_queue: MakeQueue) -> None:
        queue = make_queue()
        with pytest.raises(QueueMissing):
            queue.consumer().start()
        _, _, consumer = started(queue)
        with pytest.raises(QueueLocked, match="in use"):
            queue.consumer().start()
        with pytest.raises(QueueMissing, match="'consumers'"):
            queue.consumer("stranger").start()
        consumer.stop(0.0)
        consumer_of(queue, "main")

    def test_commit_needs_a_started_consumer(self, make_queue: MakeQueue) -> None:
        queue = make_queue()
        queue.writer.start()
        queue.writer.append(1, [b"x"])
        consumer = queue.consumer()
        for _ in range(2):
            consumer.stop(0.0)
            with pytest.raises(PermanentError, match="before start"):
                consumer.commit(1)
            consumer.start()
            consumer.start()
        assert consumer.committed() == 0


class Together:
    def test_everything_goes_on_where_it_was_when_all_parts_start_again(
        self, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(when_full="drop_oldest")
        for _ in range(3):
            writer, reader, consumer = parts = started(queue)
            before = writer.writing
            for number in range(before, before + 25):
                writer.append(1, payloads(number, 1))
            [*_, run] = reader.runs(consumer.committed(), reader.writing() - 1)
            consumer.commit(run.end, {OVERFLOW: writer.oldest - consumer.committed()})
            numbers = (writer.oldest, writer.dropped, consumer.committed())
            for part in reversed(parts):
                part.stop(0.0)
        writer, reader, consumer = started(queue)
        assert (writer.oldest, writer.dropped, consumer.committed()) == numbers
        assert writer.writing == 75
        assert drain(reader, consumer) == payloads(74, 1)

    def test_a_writer_and_a_consumer_in_two_threads_deliver_everything_once(
        self, make_queue: MakeQueue
    ) -> None:
        writer, reader, consumer = started(make_queue())
        count = 300

        def write() -> None:
            while writer.writing < count:
                try:
                    writer.append(1, payloads(writer.writing, 3))
                except QueueFull:
                    continue

        writing = threading.Thread(target=write)
        writing.start()
        delivered: list[bytes] = []
        while consumer.committed() < count:
            delivered += drain(reader, consumer)
        writing.join()
        assert delivered == payloads(0, count)


class QueueContract(Appending, Reading, Overflowing, Committing, Together):
    pass

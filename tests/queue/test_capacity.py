"""How long a queue lasts: the pace of what is written, and the room there is for it."""

from __future__ import annotations

import math

import pytest

from skyfarer.base.units import KIB
from skyfarer.queue.capacity import FOREVER_S, LOOK_INTERVAL_S, Pace, Watch, lasts_s
from skyfarer.queue.errors import QueueMissing
from skyfarer.queue.fill import fill_of
from skyfarer.queue.inspection import inspect
from skyfarer.queue.layout import PAGE_BYTES
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

SEGMENT_BYTES, CAPACITY_BYTES = 16 * KIB, 64 * KIB


def fill(writer):
    for _ in range(CAPACITY_BYTES // SEGMENT_BYTES):
        writer.append(1, [bytes(1024)] * 8)


def test_a_steady_count_has_its_own_rate_from_the_second_observation_on():
    pace = Pace(memory_s=60)
    pace.observe(100.0, 5000)
    assert pace.per_s == 0
    for second in range(1, 200):
        pace.observe(100.0 + second, 5000 + 250 * second)
        assert pace.per_s == pytest.approx(250)


def test_how_often_it_is_observed_does_not_change_the_rate():
    often, seldom = Pace(), Pace()
    for tenth in range(601):
        often.observe(tenth / 10, tenth * 4)
        if tenth % 100 == 0:
            seldom.observe(tenth / 10, tenth * 4)
    assert often.per_s == pytest.approx(seldom.per_s) == pytest.approx(40)


def test_what_is_long_ago_weighs_little_and_the_newest_most():
    pace = Pace(memory_s=60)
    pace.observe(0.0, 0)
    pace.observe(600.0, 60_000)  # 100 a second
    pace.observe(660.0, 60_000)  # nothing for as long as it remembers
    assert pace.per_s == pytest.approx(100 / math.e, rel=1e-3)
    pace.observe(1260.0, 60_000)
    assert pace.per_s < 0.01


def test_a_second_count_of_the_same_moment_and_one_that_went_back_do_no_harm():
    pace = Pace()
    pace.observe(0.0, 100)
    pace.observe(10.0, 200)
    pace.observe(10.0, 900)
    assert pace.per_s == pytest.approx(10)
    pace.observe(20.0, 0)
    assert 0 < pace.per_s < 10


@pytest.mark.parametrize(
    ("room_bytes", "bytes_per_s", "seconds"),
    [
        (1000, 10.0, 100.0),
        (1000, 0.0, math.inf),
        (1000, 999 / FOREVER_S, math.inf),
        (1000, 1001 / FOREVER_S, pytest.approx(FOREVER_S, rel=0.01)),
        (0, 10.0, 0.0),
        (0, 0.0, 0.0),
    ],
)
def test_room_lasts_its_bytes_by_the_rate_and_the_ends_are_defined(
    room_bytes, bytes_per_s, seconds
):
    assert lasts_s(room_bytes, bytes_per_s) == seconds


def test_a_first_look_knows_no_rate_and_the_second_does(bench):
    clock = HandClock()
    writer = bench.writer()
    watch = Watch(bench.directory, clock)
    assert watch.look().capacity_s == math.inf
    clock.seconds = 10.0
    writer.append(1, [bytes(1024)] * 8)  # all the payload bytes of one segment of four
    outlook = watch.look()
    assert inspect(bench.directory).written_bytes == SEGMENT_BYTES
    assert outlook.records_per_s == pytest.approx(0.8)
    assert outlook.bytes_per_s == pytest.approx(SEGMENT_BYTES / 10)
    assert outlook.capacity_s == pytest.approx(40)
    assert outlook.free_s == pytest.approx(30)


def test_small_records_use_up_a_segment_by_their_number(bench):
    writer = bench.writer()
    slots = bench.settings().geometry.slots
    for share in (0.25, 0.5):
        writer.append(1, [b"x"] * (slots // 4))
        assert inspect(bench.directory).written_bytes == pytest.approx(
            share * SEGMENT_BYTES, rel=0.05
        )
    writer.append(1, [b"x"] * slots)
    assert SEGMENT_BYTES < inspect(bench.directory).written_bytes < 2 * SEGMENT_BYTES


def test_every_lap_of_the_ring_is_counted_and_a_restart_forgets_none(bench):
    writer, consumer = bench.writer(), bench.consumer()
    for segments in range(1, 13):
        writer.append(1, [bytes(1024)] * 8)
        consumer.commit(writer.writing)
        assert inspect(bench.directory).written_bytes == segments * SEGMENT_BYTES
    writer.stop(1.0)
    bench.writer()
    assert inspect(bench.directory).written_bytes == 12 * SEGMENT_BYTES


def test_a_full_queue_lasts_no_longer_though_nothing_is_written_any_more(bench):
    clock, writer = HandClock(), bench.writer()
    watch = Watch(bench.directory, clock)
    watch.look()
    clock.seconds = 4.0
    fill(writer)
    outlook = watch.look()
    assert (outlook.capacity_s, outlook.free_s) == (pytest.approx(4), 0)
    clock.seconds = 1e9
    outlook = watch.look()
    assert (outlook.capacity_s, outlook.free_s) == (math.inf, 0)


def test_what_all_consumers_have_taken_over_is_free_again(bench):
    clock, writer, consumer = HandClock(), bench.writer(), bench.consumer()
    watch = Watch(bench.directory, clock)
    watch.look()
    clock.seconds = 4.0
    fill(writer)
    consumer.commit(24)
    assert watch.look().free_s == pytest.approx(3)


def test_the_light_look_and_the_whole_inspection_agree(bench):
    def agree() -> None:
        found, fill = inspect(bench.directory), fill_of(bench.directory)
        assert fill == (
            found.capacity_bytes,
            found.room.free_bytes,
            found.written_bytes,
            found.writing,
        )

    writer, consumer = bench.writer(when_full="drop_oldest"), bench.consumer()
    agree()
    for number in range(60):
        writer.append(1, [b"%d" % number * 500] * 3)
        if number % 7 == 0:
            consumer.commit(max(writer.oldest, writer.writing - 9))
        agree()
    (bench.directory / "consumer-main").write_bytes(bytes(2 * PAGE_BYTES))
    agree()
    bench.segment_paths()[0].unlink()
    agree()


def test_a_directory_without_a_queue_is_told_as_inspect_tells_it(tmp_path):
    with pytest.raises(QueueMissing):
        Watch(tmp_path, HandClock()).look()


def test_metrics_show_both_and_look_no_more_than_once_a_second(bench):
    clock, writer, registry = HandClock(), bench.writer(), Registry()
    Watch(bench.directory, clock).register(registry, "native")

    def shown() -> dict[str, str]:
        lines = registry.render().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")

    names = [f'queue_{what}_seconds{{queue="native"}}' for what in ("capacity", "free")]
    assert shown() == dict.fromkeys(names, "+Inf")
    writer.append(1, [bytes(1024)] * 8)
    clock.seconds = LOOK_INTERVAL_S / 2
    assert shown() == dict.fromkeys(names, "+Inf")
    clock.seconds = 10.0
    assert [float(shown()[name]) for name in names] == [pytest.approx(40), pytest.approx(30)]

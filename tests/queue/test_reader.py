from __future__ import annotations

import multiprocessing
import struct
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.queue.atlas import Atlas
from skyfarer.queue.errors import QueueMissing
from skyfarer.queue.meta import read_meta
from skyfarer.queue.reader import Reader


def test_runs_cover_exactly_the_range_asked_for(bench):
    bench.writer().append(1, [b"%d" % n for n in range(600)])
    reader = bench.reader()
    runs = list(reader.runs(100, 580))
    assert [(run.first, run.end) for run in runs] == [(100, 204), (204, 408), (408, 580)]
    assert bytes(runs[1].payloads()[0]) == b"204"


def test_an_end_beyond_the_last_record_stops_at_the_last_record(bench):
    bench.writer().append(1, [b"a", b"b"])
    reader = bench.reader()
    assert [run.end for run in reader.runs(0, 10**12)] == [2]
    assert list(reader.runs(2, 10**12)) == []
    assert list(reader.runs(1, 1)) == []


def test_a_run_ends_before_the_bytes_asked_for_and_has_one_record_at_least(bench):
    bench.writer().append(1, [b"x" * size for size in (100, 100, 3000, 100, 100)])
    reader = bench.reader()
    assert [run.count for run in reader.runs(0, 5, bytes_max=200)] == [2, 1, 2]
    assert [run.count for run in reader.runs(0, 5, bytes_max=199)] == [1, 1, 1, 1, 1]


def test_payloads_lie_back_to_back_for_an_arrow_array(bench):
    writer = bench.writer()
    writer.append(1, [b"abc", b"", b"de"])
    writer.append(2, [b"f"])
    [run] = bench.runs()
    entries = list(struct.iter_unpack("<IIIII", run.index))
    assert [start for start, *_ in entries] == [0, 3, 3, 5]
    assert bytes(run.data[:6]) == b"abcdef"
    assert run.data.readonly and run.index.readonly


def test_a_reader_sees_what_is_appended_after_it_looked(bench):
    writer, reader = bench.writer(), bench.reader()
    for n in range(20):
        writer.append(1, [b"%d" % n * 300])
        [run] = reader.runs(n, reader.writing())
        assert [bytes(payload) for payload in run.payloads()] == [b"%d" % n * 300]


def test_a_reader_follows_the_ring_through_many_laps(bench):
    writer, reader, consumer = bench.writer(), bench.reader(), bench.consumer()
    for n in range(200):
        writer.append(1, [b"%05d" % n * 400] * 3)
        runs = list(reader.runs(consumer.committed(), reader.writing()))
        assert [bytes(p) for run in runs for p in run.payloads()] == [b"%05d" % n * 400] * 3
        consumer.commit(runs[-1].end)
    assert reader.oldest() > 500


def test_a_reader_outlives_a_restart_of_the_writer(bench):
    writer, reader = bench.writer(), bench.reader()
    writer.append(1, [b"a"])
    assert reader.writing() == 1
    writer.stop(1.0)
    bench.writer().append(1, [b"b"])
    [run] = reader.runs(0, reader.writing())
    assert [bytes(payload) for payload in run.payloads()] == [b"a", b"b"]


def test_runs_stay_readable_after_the_reader_stopped(bench):
    bench.writer().append(1, [b"kept"])
    reader = bench.reader()
    [run] = reader.runs(0, 1)
    reader.stop()
    reader.stop()
    assert bytes(run.payloads()[0]) == b"kept"
    with pytest.raises(PermanentError, match="after stop"):
        reader.writing()


def test_a_reader_without_a_queue_says_to_wait_for_the_writer(tmp_path):
    with pytest.raises(QueueMissing, match="its writer makes it"):
        Reader(tmp_path).start()


def test_committed_records_of_a_reused_segment_are_told_as_lost_never_as_others(bench):
    writer, consumer, onlooker = bench.writer(), bench.consumer(), bench.reader()
    writer.append(1, [b"old" * 1000] * 2)
    assert [run.count for run in onlooker.runs(0, 2)] == [2]
    for _ in range(10):
        writer.append(1, [b"new" * 1000] * 2)
        consumer.commit(writer.writing)
    runs = list(onlooker.runs(0, onlooker.writing()))
    assert [run.first for run in runs] == [0, *(run.end for run in runs[:-1])]
    assert runs[0].reason == "overflow"
    assert {bytes(p) for run in runs for p in run.payloads()} == {b"new" * 1000}


def _read_elsewhere(directory: Path, pipe: multiprocessing.connection.Connection) -> None:
    reader = Reader(directory)
    reader.start()
    seen = 0
    while seen < 300:
        for run in reader.runs(seen, reader.writing()):
            for payload in run.payloads():
                pipe.send_bytes(payload)
            seen = run.end
    pipe.close()


def test_another_process_reads_what_is_appended_while_it_is_appended(bench):
    writer = bench.writer(capacity_bytes=1024 * 1024)
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(
        target=_read_elsewhere, args=(bench.directory, there)
    )
    child.start()
    for n in range(300):
        writer.append(1, [b"%d" % n * 500])
    assert [here.recv_bytes() for _ in range(300)] == [b"%d" % n * 500 for n in range(300)]
    child.join()
    assert child.exitcode == 0


def test_a_reader_knows_of_no_more_segments_than_the_ring_has(bench):
    writer, consumer = bench.writer(), bench.consumer()
    atlas = Atlas(bench.directory, read_meta(bench.directory), mapped_max=2)
    for _ in range(40):
        writer.append(1, [b"x" * 4000] * 2)
        segment, _ = atlas.find(writer.writing - 1)
        assert segment.first <= writer.writing - 1
        assert len(atlas) <= 4
        consumer.commit(writer.writing)

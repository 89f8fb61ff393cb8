"""A flipped bit costs the record it hit; a lost file costs its records; nothing else is lost."""

from __future__ import annotations

import os
import struct

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES
from skyfarer.testing.faulty_disk import Death, FaultyDisk

COUNT = 12
PAYLOADS = [b"%02d" % n * (20 + n) for n in range(COUNT)]


@pytest.fixture
def closed(bench):
    writer = bench.writer()
    writer.append(3, PAYLOADS)
    writer.stop(1.0)
    return bench


def flip(path, byte, bit):
    with path.open("r+b") as file:
        file.seek(byte)
        old = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([old ^ 1 << bit]))


def lost_by_flip(bench, path, byte):
    """What is damaged with the bit flipped, seen by a reader of a restarted queue."""
    whole = path.read_bytes()
    flip(path, byte, byte % 8)
    writer = bench.writer()
    runs = bench.runs()
    assert writer.writing == COUNT
    assert [run.first for run in runs] == [0, *(run.end for run in runs[:-1])]
    for run in runs:
        for sequence, payload in zip(run.sequences(), run.payloads(), strict=True):
            assert bytes(payload) == PAYLOADS[sequence]
    damaged = [sequence for run in runs for sequence in run.damaged]
    assert sum(len(run.payloads()) for run in runs) + len(damaged) == COUNT
    bench.close()
    path.write_bytes(whole)
    return damaged


def test_a_flipped_bit_in_any_payload_or_entry_costs_that_record_alone(closed):
    [path] = closed.segment_paths()
    geometry = closed.settings().geometry
    at = geometry.payload_offset
    for sequence, payload in enumerate(PAYLOADS):
        entry = PAGE_BYTES + sequence * SLOT_BYTES
        for byte in (*range(entry, entry + SLOT_BYTES), *range(at, at + len(payload), 5)):
            assert lost_by_flip(closed, path, byte) == [sequence], byte
        at += len(payload)


@pytest.mark.parametrize("copy", [0, PAGE_BYTES // 2])
def test_a_flipped_bit_in_a_segment_header_costs_nothing(closed, copy):
    [path] = closed.segment_paths()
    for byte in range(copy, copy + 52):
        assert lost_by_flip(closed, path, byte) == []


@pytest.mark.parametrize("name", ["meta", "state"])
def test_a_flipped_bit_in_meta_or_state_costs_nothing(closed, name):
    for byte in range(64):
        assert lost_by_flip(closed, closed.directory / name, byte) == []


def test_a_running_reader_reports_damage_and_goes_on(bench):
    writer, reader = bench.writer(), bench.reader()
    writer.append(3, PAYLOADS)
    flip(bench.segment_paths()[0], bench.settings().geometry.payload_offset, 0)
    [run] = reader.runs(0, COUNT)
    assert run.damaged == (0,)
    assert run.dropped == {"corrupt": 1}
    assert [bytes(payload) for payload in run.payloads()] == PAYLOADS[1:]
    assert list(run.sequences()) == list(range(1, COUNT))
    assert run.kinds() == [3] * (COUNT - 1)
    assert len(run.index) == COUNT * SLOT_BYTES


def test_damage_to_the_newest_record_is_not_taken_for_a_torn_tail(closed):
    """Its number was promised, so no other record may ever get it."""
    [path] = closed.segment_paths()
    flip(path, PAGE_BYTES + (COUNT - 1) * SLOT_BYTES, 3)
    writer = closed.writer()
    assert writer.append(1, [b"next"]) == COUNT
    assert closed.damaged() == [COUNT - 1]
    assert closed.records() == [*PAYLOADS[:-1], b"next"]


def test_entries_nobody_was_promised_are_cut_when_torn(closed):
    [path] = closed.segment_paths()
    torn = struct.pack("<IIIII", 0, 5, 1, 0xDEADBEEF, 0xFEEDBEEF) * 2
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES + COUNT * SLOT_BYTES)
        file.write(torn)
    writer = closed.writer()
    assert writer.recovered.torn == 2
    assert writer.append(1, [b"next"]) == COUNT
    assert closed.damaged() == []
    assert closed.records() == [*PAYLOADS, b"next"]
    writer.stop(1.0)
    assert closed.writer().recovered.torn == 0


def test_a_segment_without_a_header_is_set_aside_and_its_records_counted_lost(bench):
    writer = bench.writer()
    writer.append(1, [b"%d" % n * 3000 for n in range(6)])
    writer.stop(1.0)
    middle = bench.segment_paths()[1]
    with middle.open("r+b") as file:
        file.write(os.urandom(PAGE_BYTES))
    writer = bench.writer()
    assert writer.recovered.quarantined == 1
    assert middle.with_name("00001.seg.corrupt").exists()
    assert [(run.first, run.end, run.dropped) for run in bench.runs()] == [
        (0, 4, {"corrupt": 2}),
        (4, 6, {}),
    ]
    assert writer.append(1, [b"next"]) == 6
    writer.stop(1.0)
    assert bench.writer().recovered.quarantined == 0
    assert len(bench.records()) == 5


@pytest.mark.parametrize("fault", ["gone", "short", "garbage", "foreign"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_numbers_stay_used_whatever_becomes_of_one_segment_file(bench, fault, position):
    writer, reader = bench.writer(), bench.reader()
    payloads = [b"%d" % n * 3000 for n in range(6)]
    writer.append(1, payloads)
    assert len(list(reader.runs(0, 6))) == 3
    writer.stop(1.0)
    path = bench.segment_paths()[position]
    if fault == "gone":
        path.unlink()
    elif fault == "short":
        path.write_bytes(path.read_bytes()[:5000])
    elif fault == "garbage":
        path.write_bytes(os.urandom(16 * 1024))
    else:
        path.write_bytes(bench.segment_paths()[(position + 1) % 3].read_bytes())
    writer = bench.writer()
    assert writer.append(1, [b"next"]) == 6
    for onlooker in (reader, bench.reader()):
        runs = list(onlooker.runs(onlooker.oldest(), 7))
        assert runs[0].first == onlooker.oldest() and runs[-1].end == 7
        found = {
            sequence: bytes(payload)
            for run in runs
            for sequence, payload in zip(run.sequences(), run.payloads(), strict=True)
        }
        expected = dict(enumerate([*payloads, b"next"]))
        assert {run.reason for run in runs} == {"corrupt"}
        gone = {2 * position, 2 * position + 1}
        assert found.items() <= expected.items()
        assert expected.keys() - gone <= found.keys()


def test_a_reader_that_had_a_lost_segment_mapped_reads_what_took_its_place(bench):
    writer, reader = bench.writer(), bench.reader()
    writer.append(1, [b"a" * 3000] * 3)
    assert [run.count for run in reader.runs(0, 3)] == [2, 1]
    writer.stop(1.0)
    bench.segment_paths()[-1].unlink()
    writer = bench.writer()
    writer.append(1, [b"b" * 3000] * 3)
    assert [bytes(p) for run in reader.runs(3, 6) for p in run.payloads()] == [b"b" * 3000] * 3
    assert bench.damaged() == [2]


def test_leftovers_of_a_file_never_finished_are_removed(closed):
    (closed.directory / "00002.seg.new").write_bytes(b"half")
    closed.writer()
    assert not (closed.directory / "00002.seg.new").exists()


def test_records_lost_before_the_first_segment_are_corrupt_and_not_overflow(bench):
    writer = bench.writer()
    writer.append(1, [b"x" * 3000] * 6)
    writer.stop(1.0)
    bench.segment_paths()[0].unlink()
    writer = bench.writer()
    assert (writer.oldest, writer.dropped, writer.recovered.lost) == (0, 0, 2)
    assert bench.runs()[0].dropped == {"corrupt": 2}


def test_numbers_promised_beyond_what_the_last_segment_can_hold_stay_used(bench):
    writer = bench.writer()
    writer.append(1, [b"%d" % n for n in range(600)])
    writer.stop(1.0)
    for path in bench.segment_paths()[1:]:
        path.unlink()
    writer = bench.writer()
    assert writer.append(1, [b"next"]) == 600
    assert bench.damaged() == list(range(204, 600))
    assert bench.records() == [*(b"%d" % n for n in range(204)), b"next"]


def test_a_reader_forgets_a_segment_file_that_was_replaced_behind_its_back(bench):
    """Even one that holds a whole record under a number which then went to another."""
    writer, reader = bench.writer(), bench.reader()
    writer.append(1, [b"a" * 3000] * 2)
    before = {path: path.read_bytes() for path in bench.directory.iterdir()}
    writer.append(1, [b"never heard of"])
    assert [run.count for run in reader.runs(0, 3)] == [3]
    writer.stop(1.0)
    for path, content in before.items():
        path.unlink() if path.suffix == ".seg" else None
        path.write_bytes(content)
    bench.writer().append(1, [b"the record"])
    assert [bytes(p) for run in reader.runs(2, 3) for p in run.payloads()] == [b"the record"]


def test_a_segment_with_no_damage_survives_the_loss_of_every_other_file(closed):
    for name in ("state", "consumer-main", "lock"):
        (closed.directory / name).unlink()
    assert closed.writer().writing == COUNT
    assert closed.records() == PAYLOADS


def test_numbers_go_on_behind_a_commit_when_all_segments_are_lost(closed):
    closed.writer()
    closed.consumer().commit(COUNT)
    closed.close()
    closed.segment_paths()[0].unlink()
    (closed.directory / "state").unlink()
    assert closed.writer().append(1, [b"next"]) == COUNT
    assert closed.records(COUNT) == [b"next"]


def test_records_lost_with_all_segments_are_counted_as_corrupt_and_not_as_overflow(closed):
    closed.segment_paths()[0].unlink()
    closed.writer().append(1, [b"next"])
    gap, rest = closed.runs()
    assert (gap.end, gap.dropped) == (COUNT, {"corrupt": COUNT})
    assert bytes(rest.payloads()[0]) == b"next"


def test_a_directory_whose_meta_is_gone_is_refused_and_left_alone(closed):
    (closed.directory / "meta").unlink()
    with pytest.raises(PermanentError, match=r"holds segments .* but no meta"):
        closed.writer()


def test_a_meta_damaged_in_both_copies_is_refused_and_left_alone(closed):
    (closed.directory / "meta").write_bytes(b"\x55" * PAGE_BYTES)
    with pytest.raises(PermanentError, match="damaged in both its copies"):
        closed.writer()


def test_bytes_of_an_earlier_lap_never_validate(bench):
    """Old entries put back into a reused segment point at bytes that were records once."""
    writer, consumer = bench.writer(), bench.consumer()
    writer.append(1, [b"A" * 3000] * 2)
    path = bench.segment_paths()[0]
    lap = path.read_bytes()
    for _ in range(4):
        writer.append(1, [b"B" * 3000] * 2)
        consumer.commit(writer.writing)
    geometry = bench.settings().geometry
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES)
        file.write(lap[PAGE_BYTES : geometry.payload_offset])
        file.seek(geometry.payload_offset)
        file.write(lap[geometry.payload_offset :])
    assert sorted(bench.damaged()) == [0, 1, 8, 9]
    assert b"A" * 3000 not in bench.records(writer.oldest)


@pytest.mark.parametrize("kept_bytes", [0, 1, 4, 12, 19])
def test_the_entry_of_a_single_append_may_be_torn_anywhere_and_is_cut(bench, kept_bytes):
    disk = FaultyDisk()
    writer = bench.writer(disk)
    writer.append(1, [b"kept"])
    disk.die_at(2, kept_bytes)  # the payload is written, its entry is stored
    with pytest.raises(Death):
        writer.append(1, [b"torn" * 99])
    again = bench.writer()
    assert (again.writing, again.recovered.torn) == (1, int(kept_bytes > 0))
    assert again.append(1, [b"next"]) == 1
    assert bench.records() == [b"kept", b"next"]

"""Looking into a directory from outside: what is said of it is true, and nothing in it changes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from skyfarer.queue.errors import QueueMissing
from skyfarer.queue.inspection import inspect
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES
from skyfarer.queue.onlooker import GAPS_LISTED_MAX, Gap, Verdict, pieces, verify
from skyfarer.queue.ownership import Owner, owner_of
from skyfarer.queue.reader import Reader

OWNER = """
import sys
from pathlib import Path
from skyfarer.base.units import KIB
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
writer = Writer(QueueSettings(Path(sys.argv[1]), 16 * KIB, 64 * KIB, 4 * KIB))
writer.start()
writer.append(1, [b"owned"] * 5)
print("open", flush=True)
sys.stdin.read()
"""

RUNNER = """
import sys
from pathlib import Path
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
where = Path(sys.argv[1])
writer = Writer(QueueSettings(where, 16 * KIB, 64 * KIB, 4 * KIB, when_full="drop_oldest"))
writer.start()
consumer = Consumer(where, "main")
consumer.start()
print("open", flush=True)
while True:
    writer.append(1, [b"%08d" % (writer.writing + n) * 100 for n in range(3)])
    if sys.argv[2] == "commits":
        consumer.commit(writer.writing)
"""
LAP = 40  # records of the RUNNER, four segments full

BIG = [b"%d" % n * 3000 for n in range(6)]  # two to a segment


def snapshot(directory):
    """Every byte, and when anything was last changed, the directory's own list included."""
    files = {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()
    }
    return files, directory.stat().st_mtime_ns


def flip(path, byte):
    with path.open("r+b") as file:
        file.seek(byte)
        old = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([old ^ 1]))


def tiled(found, start, end):
    """Records by number and all gaps, after checking that they answer for each number once."""
    records, gaps = {}, []
    for piece in found:
        first = piece.first if isinstance(piece, Gap) else piece[0].sequence
        assert first == start
        if isinstance(piece, Gap):
            gaps.append(piece)
            start = piece.end
        else:
            records.update({record.sequence: record.payload for record in piece})
            start += len(piece)
    assert start == end
    return records, gaps


def test_a_running_owner_is_seen_and_a_killed_one_is_not(bench):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(bench.directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdout is not None and owner.stdout.readline() == b"open\n"
    before = snapshot(bench.directory)
    reader = bench.reader()
    assert inspect(bench.directory).owner == Owner(owner.pid, True)
    assert verify(reader, lambda done: None).whole == 5
    assert tiled(pieces(reader, 0, 5), 0, 5)[0] == dict.fromkeys(range(5), b"owned")
    assert snapshot(bench.directory) == before
    owner.kill()
    owner.communicate()
    assert inspect(bench.directory).owner == Owner(owner.pid, False)


def test_a_process_that_merely_has_the_old_owners_number_is_not_the_owner(bench):
    bench.writer().stop(1.0)
    (bench.directory / "lock").write_text(f"{os.getpid()}\n")
    assert owner_of(bench.directory) == Owner(os.getpid(), False)


def test_where_the_kernel_lists_no_locks_a_living_process_is_taken_for_the_owner(bench, tmp_path):
    bench.writer()
    nowhere = tmp_path / "no-such-list"
    assert owner_of(bench.directory, nowhere) == Owner(os.getpid(), True)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (bench.directory / "lock").write_text(f"{ended.pid}\n")
    assert owner_of(bench.directory, nowhere) == Owner(ended.pid, False)
    (bench.directory / "lock").unlink()
    assert owner_of(bench.directory, nowhere) == Owner(None, False)


def test_an_onlooker_in_the_middle_of_its_work_keeps_no_owner_and_no_consumer_out(bench):
    writer = bench.writer()
    writer.append(1, BIG)
    writer.stop(1.0)
    looking = pieces(bench.reader(), 0, len(BIG))
    assert next(looking)
    bench.writer()
    bench.consumer()
    assert next(looking)


def test_the_ledger_of_every_consumer_adds_up(bench):
    writer = bench.writer(when_full="drop_oldest", consumers=("fast", "slow"))
    fast, slow = bench.consumer("fast"), bench.consumer("slow")
    for _ in range(4):
        writer.append(1, BIG[:3])
    fast.commit(10, {"rejected": 3})
    slow.commit(1)
    found = inspect(bench.directory)
    ledgers = {consumer.name: consumer.ledger for consumer in found.consumers}
    assert (found.oldest, found.writing) == (writer.oldest, 12)
    for ledger in ledgers.values():
        assert ledger.accepted == ledger.delivered + ledger.queued + sum(ledger.dropped.values())
    assert (ledgers["fast"].delivered, ledgers["fast"].queued) == (7, 2)
    assert ledgers["fast"].dropped == {"rejected": 3}
    assert (ledgers["slow"].queued, ledgers["slow"].overwritten) == (11, writer.oldest - 1)


def test_segments_are_used_until_all_have_committed_them_and_then_reusable(bench):
    writer, consumer = bench.writer(), bench.consumer()
    writer.append(1, BIG)
    room = inspect(bench.directory).room
    assert (room.segments, room.used, room.reusable, room.free) == (4, 3, 0, 1)
    assert room.used_bytes + room.free_bytes == inspect(bench.directory).capacity_bytes
    consumer.commit(4)
    room = inspect(bench.directory).room
    assert (room.used, room.reusable, room.free) == (1, 2, 1)
    assert room.used_bytes == 16 * 1024


def test_damaged_and_set_aside_files_are_named_without_being_touched(bench):
    writer = bench.writer()
    writer.append(1, BIG)
    writer.stop(1.0)
    short, garbled, whole = bench.segment_paths()
    short.write_bytes(b"short")
    with garbled.open("r+b") as file:
        file.write(b"\x55" * PAGE_BYTES)
    (bench.directory / "consumer-main").write_bytes(b"\0" * 2 * PAGE_BYTES)
    (bench.directory / "00003.seg.corrupt").write_bytes(b"old")
    (bench.directory / "consumer-next.new").write_bytes(b"half")
    before = snapshot(bench.directory)
    found = inspect(bench.directory)
    assert found.damaged_files == (short.name, garbled.name)
    assert found.corrupt_files == ("00003.seg.corrupt",)
    assert [(consumer.name, consumer.ledger) for consumer in found.consumers] == [("main", None)]
    assert (found.room.used, whole.exists()) == (1, True)
    assert snapshot(bench.directory) == before


def test_a_header_wiped_where_records_belong_is_damage_and_an_unused_file_is_not(bench):
    writer = bench.writer()
    writer.append(1, BIG)
    writer.stop(1.0)
    with bench.segment_paths()[1].open("r+b") as file:
        file.write(bytes(PAGE_BYTES))
    (bench.directory / "00003.seg").write_bytes(bytes(16 * 1024))
    assert inspect(bench.directory).damaged_files == ("00001.seg",)


def test_verify_finds_every_damaged_record_and_every_lost_range(bench):
    writer = bench.writer()
    writer.append(1, [b"small"] * 10)
    writer.append(1, BIG)
    first, second, *_ = bench.segment_paths()
    payloads = bench.settings().geometry.payload_offset
    for byte in (PAGE_BYTES, PAGE_BYTES + 4 * SLOT_BYTES + 3, payloads + 5 * 5):
        flip(first, byte)
    second.unlink()
    heard = []
    verdict = verify(bench.reader(), heard.append)
    assert verdict.gaps == [Gap(0, 1, "damaged"), Gap(4, 6, "damaged"), Gap(12, 14, "lost")]
    assert (verdict.whole, verdict.damaged, verdict.lost) == (11, 3, 2)
    assert heard == sorted(heard) and heard[-1] == 16


def test_verify_takes_neighbouring_ranges_together_and_lists_a_bounded_number(bench):
    verdict = Verdict(0, 10_000)
    verdict.add(Gap(0, 2, "lost"))
    verdict.add(Gap(2, 5, "lost"))
    assert verdict.gaps == [Gap(0, 5, "lost")]
    for sequence in range(10, 10_000, 2):
        verdict.add(Gap(sequence, sequence + 1, "damaged"))
    assert len(verdict.gaps) == GAPS_LISTED_MAX
    assert (verdict.lost, verdict.damaged) == (5, 4995)


def test_pieces_answer_for_every_number_once_among_damage(bench):
    writer = bench.writer()
    small = [b"%03d" % n for n in range(40)]
    writer.append(1, small)
    writer.append(2, BIG)
    first, second, *_ = bench.segment_paths()
    for slot in (0, 7, 8, 39):
        flip(first, PAGE_BYTES + slot * SLOT_BYTES)
    second.unlink()
    reader = bench.reader()
    records, gaps = tiled(pieces(reader, 0, 46), 0, 46)
    assert [(gap.first, gap.end, gap.what) for gap in gaps] == [
        (0, 1, "damaged"),
        (7, 9, "damaged"),
        (39, 40, "damaged"),
        (42, 44, "lost"),
    ]
    assert records.items() <= dict(enumerate([*small, *BIG])).items()
    assert len(records) == 40
    assert tiled(pieces(reader, 8, 20), 8, 20)[1] == [Gap(8, 9, "damaged")]


def test_a_piece_is_no_larger_than_the_step_or_one_record(bench):
    bench.writer().append(1, [b"x" * 500] * 10 + [b"y" * 3000] * 2)
    lengths = [
        [len(record.payload) for record in piece]
        for piece in pieces(bench.reader(), 0, 12, step_bytes=1200)
    ]
    assert all(sum(piece) <= 1200 or len(piece) == 1 for piece in lengths)
    assert sum(map(len, lengths)) == 12


def test_numbers_below_the_oldest_are_one_overwritten_range(bench):
    writer = bench.writer(when_full="drop_oldest")
    for _ in range(5):
        writer.append(1, BIG[:3])
    found = pieces(bench.reader(), 0, 15)
    _, gaps = tiled(found, 0, 15)
    assert gaps == [Gap(0, writer.oldest, "overwritten")]


def test_records_reused_before_they_are_copied_are_never_handed_out(bench):
    """The owner goes round the ring between the check of a run and the copying of it."""
    writer, consumer = bench.writer(), bench.consumer()
    writer.append(1, [b"a" * 2000] * 9)
    consumer.commit(9)

    class Overtaken(Reader):
        def runs(self, start, end, bytes_max=0):
            for run in super().runs(start, end, bytes_max):
                if writer.writing == 9:
                    writer.append(1, [b"b" * 2000] * 9)
                    assert b"b" * 2000 in list(map(bytes, run.payloads()))
                yield run

    reader = Overtaken(bench.directory)
    reader.start()
    records, gaps = tiled(pieces(reader, 0, 9), 0, 9)
    reader.stop()
    assert gaps == [Gap(0, 4, "overwritten")]
    assert records == dict.fromkeys(range(4, 9), b"a" * 2000)


@pytest.mark.parametrize("consumer", ["commits", "sleeps"])
def test_an_owner_that_races_round_its_ring_never_looks_damaged(bench, consumer):
    """With a consumer that commits, files are reused in place; without, they are replaced."""
    owner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(bench.directory), consumer], stdout=subprocess.PIPE
    )
    try:
        assert owner.stdout is not None and owner.stdout.readline() == b"open\n"
        reader, rounds = bench.reader(), 0
        while rounds < 50 or reader.writing() < 10 * LAP:
            rounds += 1
            found = inspect(bench.directory)
            assert found.damaged_files == ()
            assert all(one.ledger and one.ledger.queued >= 0 for one in found.consumers)
            assert verify(reader, lambda done: None).gaps == []
            start, end = reader.oldest(), reader.writing()
            records, gaps = tiled(pieces(reader, start, end), start, end)
            assert records == {number: b"%08d" % number * 100 for number in records}
            assert {gap.what for gap in gaps} <= {"overwritten"}
    finally:
        owner.kill()
        owner.communicate()


@pytest.mark.parametrize("name", ["state", "meta"])
def test_a_directory_whose_writer_is_still_making_it_is_a_reason_to_wait(bench, name):
    bench.writer().stop(1.0)
    (bench.directory / name).unlink()
    with pytest.raises(QueueMissing):
        inspect(bench.directory)

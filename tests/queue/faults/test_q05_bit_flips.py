"""Q5: every bit of a segment, of its header and of both checkpoint slots, flipped one at a time.

A flipped bit costs the record it lies in, and nothing where it lies in none. All 131,072 bits of a
segment are flipped under a running reader; those of the header, the index and the small files that
carry meaning also before a start.
"""

from __future__ import annotations

import mmap
import shutil
from collections import Counter
from pathlib import Path

import pytest

from skyfarer.base.units import KIB
from skyfarer.queue.checkpoint import FILE_BYTES, decode_newest
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES
from skyfarer.queue.meta import read_meta
from skyfarer.testing.kill_points import PROCESSES, on_both_cores

COUNT = 12
PAYLOADS = [(b"%02d" % n * 200)[: 256 if n % 2 else 250] for n in range(COUNT)]
SEGMENT_BITS = 16 * KIB * 8
HEADER_BYTES = 52  # body and checksum; the rest of each copy is zero and is not looked at
CHECKPOINT_BYTES = 88  # with one reason
STATE_BYTES = 80  # ten words, the last two say what is suspect


@pytest.fixture
def filled(memory_bench):
    bench = memory_bench("queue")
    bench.writer().append(3, PAYLOADS)
    consumer = bench.consumer()
    for sequence in (2, 4, 6):
        consumer.commit(sequence, {"corrupt": 1})
    bench.close()
    return bench


def owner_of(byte: int, payload_offset: int) -> int | None:
    """The record a byte of the segment belongs to: its entry or its payload."""
    if PAGE_BYTES <= byte < PAGE_BYTES + COUNT * SLOT_BYTES:
        return (byte - PAGE_BYTES) // SLOT_BYTES
    start = payload_offset
    for sequence, payload in enumerate(PAYLOADS):
        if start <= byte < start + len(payload):
            return sequence
        start += len(payload)
    return None


def check(runs, owner: int | None) -> None:
    damaged = [sequence for run in runs for sequence in run.damaged]
    assert damaged == ([] if owner is None else [owner])
    expected = [payload for n, payload in enumerate(PAYLOADS) if n != owner]
    assert [bytes(payload) for run in runs for payload in run.payloads()] == expected


def apart(memory_bench, bench, share: int):
    mine = memory_bench(f"share-{share}")
    shutil.copytree(bench.directory, mine.directory)
    return mine


def test_q05_every_bit_of_a_segment_flipped_under_a_reader_costs_its_record_alone(
    filled, memory_bench
):
    def work(share: int) -> dict[str, int]:
        bench = apart(memory_bench, filled, share)
        bench.writer()
        reader, hits = bench.reader(), Counter()
        [path] = bench.segment_paths()
        offset = bench.settings().geometry.payload_offset
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as segment:
            for byte in range(share, len(segment), PROCESSES):
                owner = owner_of(byte, offset)
                for bit in range(8):
                    segment[byte] ^= 1 << bit
                    check(list(reader.runs(0, COUNT)), owner)
                    segment[byte] ^= 1 << bit
                    hits["free" if owner is None else "record"] += 1
        check(list(reader.runs(0, COUNT)), None)
        bench.close()
        return hits

    hits = sum(map(Counter, on_both_cores(work)), Counter())
    record_bytes = COUNT * SLOT_BYTES + sum(map(len, PAYLOADS))
    assert hits == {"record": 8 * record_bytes, "free": SEGMENT_BITS - 8 * record_bytes}


def flipped(path: Path, byte: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1 << bit
    path.write_bytes(data)


def places(bench) -> list[tuple[str, int]]:
    """Bytes that mean something to a start, file by file."""
    [segment] = bench.segment_paths()
    copies = [at + n for at in (0, PAGE_BYTES // 2) for n in range(HEADER_BYTES)]
    entries = range(PAGE_BYTES, PAGE_BYTES + (COUNT + 2) * SLOT_BYTES)
    found = [(segment.name, byte) for byte in (*copies, *entries)]
    found += [("meta", byte) for byte in copies]
    return found + [("state", byte) for byte in range(STATE_BYTES)]


def test_q05_every_bit_that_a_start_looks_at_costs_at_most_its_record(filled, memory_bench):
    def work(share: int) -> dict[str, int]:
        bench, hits = apart(memory_bench, filled, share), Counter()
        offset = bench.settings().geometry.payload_offset
        for name, byte in places(filled)[share::PROCESSES]:
            owner = owner_of(byte, offset) if name.endswith(".seg") else None
            for bit in range(8):
                flipped(bench.directory / name, byte, bit)
                writer = bench.writer()
                assert writer.writing == COUNT
                assert not writer.recovered.quarantined
                check(bench.runs(), owner)
                bench.close()
                for file in (name, "state"):
                    shutil.copyfile(filled.directory / file, bench.directory / file)
                hits[name] += 1
        return hits

    hits = sum(map(Counter, on_both_cores(work)), Counter())
    assert sum(hits.values()) == 8 * len(places(filled))
    assert set(hits) == {"00000.seg", "meta", "state"}


def test_q05_every_bit_of_both_checkpoint_slots_costs_at_most_the_last_commit(filled):
    path = filled.directory / "consumer-main"
    whole = path.read_bytes()
    queue_id = read_meta(filled.directory).queue_id
    places = Counter()
    for byte in range(FILE_BYTES):
        for bit in range(8):
            data = bytearray(whole)
            data[byte] ^= 1 << bit
            place = decode_newest(bytes(data), queue_id)
            assert place is not None
            assert place.dropped == {"corrupt": place.committed // 2}
            places[place.committed] += 1
    newest = 8 * CHECKPOINT_BYTES
    assert places == {4: newest, 6: 8 * FILE_BYTES - newest}


def test_q05_a_consumer_starts_with_any_bit_of_its_file_flipped(filled):
    path = filled.directory / "consumer-main"
    whole, starts = path.read_bytes(), Counter()
    writer = filled.writer()
    for slot in (0, PAGE_BYTES):
        for byte in range(slot, slot + CHECKPOINT_BYTES):
            flipped(path, byte, byte % 8)
            consumer = filled.consumer()
            starts[consumer.committed()] += 1
            assert writer.append(1, []) == COUNT
            consumer.stop()
            path.write_bytes(whole)
    filled.close()
    assert starts == {4: CHECKPOINT_BYTES, 6: CHECKPOINT_BYTES}

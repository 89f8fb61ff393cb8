"""A directory of format 2, made once and kept: today's program must read and continue it.

The files in `golden/format-2` are never renewed to make a test pass: a test that fails here means
that queues on the disks of users cannot be read any more. A new format gets a directory of its own,
made by hand with `python tests/queue/test_golden.py DIRECTORY`. Format 1 was never released.
"""

from __future__ import annotations

import shutil
import struct
import sys
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.inspection import inspect
from skyfarer.queue.layout import seal_page
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

GOLDEN = Path(__file__).parent / "golden" / "format-2"
CAPACITY_BYTES = 48 * KIB
KINDS = (1, 2, 3, 5)

QUEUE_ID = "0738b276abad887db467c859db554cc3"
WRITING = 60
OLDEST = 39
COMMITTED = 42
DROPPED = {"rejected": 1, "overflow": 27}


def kind(sequence: int) -> int:
    return KINDS[sequence // 2 % len(KINDS)]


def payload(sequence: int) -> bytes:
    return b"%04d" % sequence * (0 if sequence % 13 == 5 else 100 + 37 * (sequence % 11))


def make_golden(directory: Path) -> None:
    """Three segments go round more than twice over a consumer that is too slow, refuses one record
    and has read a part of what is left."""
    writer = Writer(
        QueueSettings(directory, 16 * KIB, CAPACITY_BYTES, 4 * KIB, when_full="drop_oldest")
    )
    reader, consumer = Reader(directory), Consumer(directory, "main")
    for part in (writer, reader, consumer):
        part.start()
    _append(writer, 4)
    consumer.commit(3, {"rejected": 1})
    _append(writer, 50)
    gone, rest, *_ = reader.runs(consumer.committed(), reader.writing())
    consumer.commit(gone.end, gone.dropped)
    consumer.commit(rest.end, rest.dropped)
    _append(writer, WRITING)
    consumer.commit(consumer.committed() + 3)
    for part in (consumer, reader, writer):
        part.stop(1.0)


def _append(writer: Writer, until: int) -> None:
    while writer.writing < until:
        first = writer.writing
        writer.append(kind(first), [payload(first), payload(first + 1)])


@pytest.fixture
def copied(bench):
    """The directory itself stays as it is, whatever a test does."""
    shutil.copytree(GOLDEN, bench.directory)
    return bench


def test_the_golden_directory_has_seen_two_laps_a_slow_consumer_and_drops(copied):
    found = inspect(copied.directory)
    assert (found.format_version, found.queue_id) == (2, QUEUE_ID)
    assert (found.oldest, found.writing) == (OLDEST, WRITING)
    [main] = found.consumers
    assert main.name == "main"
    assert main.ledger is not None
    assert (main.ledger.committed, main.ledger.dropped) == (COMMITTED, DROPPED)
    assert (copied.reader().writing(), found.damaged_files) == (WRITING, ())


def test_todays_reader_reads_every_golden_record_byte_for_byte(copied):
    found = {}
    for run in copied.runs(OLDEST):
        assert not run.damaged
        for sequence, one, data in zip(run.sequences(), run.kinds(), run.payloads(), strict=True):
            found[sequence] = (one, bytes(data))
    assert found == {s: (kind(s), payload(s)) for s in range(OLDEST, WRITING)}


def test_todays_writer_continues_a_golden_queue(copied):
    writer = copied.writer(capacity_bytes=CAPACITY_BYTES, when_full="drop_oldest")
    assert writer.recovered is not None
    assert (writer.recovered.torn, writer.recovered.lost, writer.recovered.quarantined) == (0, 0, 0)
    assert writer.append(kind(WRITING), [payload(WRITING), payload(WRITING + 1)]) == WRITING
    assert copied.damaged() == list(range(writer.oldest))
    assert copied.records(writer.oldest) == [
        payload(sequence) for sequence in range(writer.oldest, WRITING + 2)
    ]


def test_todays_consumer_goes_on_where_the_golden_one_was(copied):
    consumer = copied.consumer()
    assert (consumer.committed(), consumer.dropped()) == (COMMITTED, DROPPED)
    consumer.commit(WRITING)
    [main] = inspect(copied.directory).consumers
    assert main.ledger is not None
    assert (main.ledger.queued, main.ledger.dropped) == (0, DROPPED)


@pytest.mark.parametrize("version", [1, 3])
def test_a_directory_of_another_format_is_refused_by_its_number_and_left_alone(copied, version):
    meta = copied.directory / "meta"
    body = bytearray(meta.read_bytes()[:40])
    struct.pack_into("<I", body, 8, version)
    meta.write_bytes(seal_page(bytes(body)))
    before = {path.name: path.read_bytes() for path in copied.directory.glob("[!l]*")}
    for opening in (
        copied.reader,
        copied.consumer,
        lambda: copied.writer(capacity_bytes=CAPACITY_BYTES),
        lambda: inspect(copied.directory),
    ):
        with pytest.raises(
            PermanentError, match=rf"meta has queue format {version}, .* reads format 2"
        ):
            opening()
    assert {path.name: path.read_bytes() for path in copied.directory.glob("[!l]*")} == before


if __name__ == "__main__":
    make_golden(Path(sys.argv[1]))

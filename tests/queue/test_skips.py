"""The list of records that the analysis leaves out: kept, bounded, and of one queue alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.errors import QueueMissing
from skyfarer.queue.inspection import inspect
from skyfarer.queue.onlooker import verify
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.skips import FILE, REASON_CHARACTERS_MAX, SKIPS_MAX, add_skip, read_skips
from skyfarer.queue.writer import Writer

WAIT_S = 120.0


def writer_of(directory: Path) -> Writer:
    settings = QueueSettings(
        directory, 16 * KIB, 64 * KIB, 4 * KIB, consumers=("analysis",), durability="fsync"
    )
    return Writer(settings)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    where = tmp_path / "ingest"
    writer = writer_of(where)
    writer.start()
    writer.append(1, [b"record %d" % number for number in range(500)])
    yield where
    writer.stop(1.0)


def test_a_queue_without_a_list_skips_nothing(directory: Path) -> None:
    assert read_skips(directory) == {}
    assert not (directory / FILE).exists()


def test_added_records_are_read_in_order_with_their_reasons(directory: Path) -> None:
    add_skip(directory, 20, "by an operator", keep_from=3)
    add_skip(directory, 4, "größer\n  than it looks", keep_from=3)
    add_skip(directory, 20, "another reason", keep_from=3)
    assert read_skips(directory) == {4: "größer than it looks", 20: "another reason"}
    assert list(read_skips(directory)) == [4, 20]


def test_adding_drops_what_was_analysed_meanwhile(directory: Path) -> None:
    for number in (3, 5, 9):
        add_skip(directory, number, "by an operator", keep_from=3)
    add_skip(directory, 10, "by an operator", keep_from=9)
    assert list(read_skips(directory)) == [9, 10]


def test_a_long_reason_is_cut(directory: Path) -> None:
    add_skip(directory, 1, "x" * 5000, keep_from=0)
    assert read_skips(directory) == {1: "x" * REASON_CHARACTERS_MAX}


def test_a_full_list_takes_no_more_until_the_analysis_passes_some(directory: Path) -> None:
    fill_list(directory, SKIPS_MAX)
    with pytest.raises(PermanentError, match="holds 10000 records that are not analysed yet"):
        add_skip(directory, SKIPS_MAX, "by an operator", keep_from=0)
    add_skip(directory, 7, "a new reason for a known record", keep_from=0)
    add_skip(directory, SKIPS_MAX, "by an operator", keep_from=1)
    assert len(read_skips(directory)) == SKIPS_MAX
    assert 0 not in read_skips(directory)


def fill_list(directory: Path, count: int) -> None:
    add_skip(directory, 0, "by an operator", keep_from=0)
    content = json.loads((directory / FILE).read_text())
    content["skipped"] = {str(number): "by an operator" for number in range(count)}
    (directory / FILE).write_text(json.dumps(content))


def test_a_new_queue_in_the_same_directory_ignores_the_old_list(
    directory: Path, tmp_path: Path
) -> None:
    add_skip(directory, 4, "by an operator", keep_from=0)
    again = tmp_path / "again"
    writer = writer_of(again)
    writer.start()
    writer.stop(1.0)
    shutil.copy(directory / FILE, again / FILE)
    assert read_skips(again) == {}
    add_skip(again, 9, "by an operator", keep_from=0)
    assert list(read_skips(again)) == [9]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"version": 1, "queue": "ab"}',
        b'{"version": 2, "queue": "ab", "skipped": {}}',
        b'{"version": 1, "queue": 7, "skipped": {}}',
        b'{"version": 1, "queue": "ab", "skipped": []}',
        b'{"version": 1, "queue": "ab", "skipped": {"-4": "x"}}',
        b'{"version": 1, "queue": "ab", "skipped": {"4": null}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_list_is_named_and_left_as_it_is(directory: Path, content: bytes) -> None:
    (directory / FILE).write_bytes(content)
    with pytest.raises(PermanentError, match=r"ingest/skips\.json is damaged"):
        read_skips(directory)
    with pytest.raises(PermanentError, match=r"ingest/skips\.json is damaged"):
        add_skip(directory, 1, "by an operator", keep_from=0)
    assert (directory / FILE).read_bytes() == content


def test_a_list_that_cannot_be_read_is_named(directory: Path) -> None:
    (directory / FILE).mkdir()
    with pytest.raises(PermanentError, match=r"cannot read .*skips\.json: Is a directory"):
        read_skips(directory)


def test_a_directory_without_a_queue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueueMissing):
        read_skips(tmp_path)
    with pytest.raises(QueueMissing):
        add_skip(tmp_path, 1, "by an operator", keep_from=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_another_user_than_the_queues_owner_is_refused(directory: Path) -> None:
    os.chown(directory / "meta", 12_345, 12_345)
    with pytest.raises(PermanentError, match="belongs to user 12345"):
        add_skip(directory, 1, "by an operator", keep_from=0)
    assert not (directory / FILE).exists()


def test_the_list_is_private_and_leaves_nothing_beside_it(directory: Path) -> None:
    before = {path.name for path in directory.iterdir()}
    add_skip(directory, 1, "by an operator", keep_from=0)
    assert (directory / FILE).stat().st_mode & 0o777 == 0o600
    assert {path.name for path in directory.iterdir()} == before | {FILE}


def test_commands_that_add_at_the_same_time_lose_no_record(directory: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from skyfarer.queue.skips import add_skip\n"
        "for number in range(int(sys.argv[2]), 200, 4):\n"
        "    add_skip(Path(sys.argv[1]), number, 'by an operator', 0)"
    )
    adding = [
        subprocess.Popen([sys.executable, "-c", program, str(directory), str(first)])
        for first in range(4)
    ]
    assert [process.wait(WAIT_S) for process in adding] == [0] * 4
    assert list(read_skips(directory)) == list(range(200))


def test_the_queue_and_its_recovery_leave_the_list_alone(tmp_path: Path) -> None:
    where = tmp_path / "ingest"
    for number in range(3):
        writer = writer_of(where)
        writer.start()
        writer.append(1, [bytes(1000)] * 10)
        add_skip(where, number, "by an operator", keep_from=0)
        (where / "skips.json.new").write_bytes(b"cut off")
        writer.stop(1.0)
    check_whole(where, 30)
    assert list(read_skips(where)) == [0, 1, 2]


def check_whole(directory: Path, records: int) -> None:
    found = inspect(directory)
    assert [one.name for one in found.consumers] == ["analysis"]
    assert (found.damaged_files, found.corrupt_files) == ((), ())
    reader, consumer = Reader(directory), Consumer(directory, "analysis")
    reader.start()
    consumer.start()
    assert verify(reader, lambda _: None).whole == records
    consumer.commit(records)
    consumer.stop()
    reader.stop()

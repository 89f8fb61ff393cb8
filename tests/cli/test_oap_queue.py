"""`skyfarer oap queue skip`, on ingest queues whose owner runs and whose owner does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skyfarer.base.units import KIB
from skyfarer.cli.main import main
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.skips import read_skips
from skyfarer.queue.writer import Writer
from skyfarer.wire.rpc import Kind

COMMITTED, WRITING, POISON = 3, 43, 12


@pytest.fixture
def ingest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three records were analysed; the thirteenth stops the analysis."""
    monkeypatch.setenv("SKYFARER_DATA_DIR", str(tmp_path))
    where = tmp_path / "ingest"
    writer = writer_of(where)
    writer.start()
    consumer = Consumer(where, "analysis")
    consumer.start()
    records = [b"segment %d" % number for number in range(WRITING)]
    records[POISON] = b"\x0a" + b"\xff" * 9 + b"\x01"
    writer.append(Kind.SEGMENT, records)
    consumer.commit(COMMITTED)
    yield where
    consumer.stop()
    writer.stop(1.0)


def writer_of(where: Path) -> Writer:
    return Writer(QueueSettings(where, 16 * KIB, 64 * KIB, 4 * KIB, consumers=("analysis",)))


def skip(*arguments: object) -> int:
    return main(["oap", "queue", "skip", *map(str, arguments)])


def files_of_the_queue(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in directory.iterdir()
        if path.name != "skips.json"
    }


def test_skip_says_what_the_record_is_and_what_will_happen(
    ingest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of_the_queue(ingest)
    assert skip("--at", POISON) == 0
    assert capsys.readouterr().out == (
        "record 12 (SEGMENT, 11 bytes) will be parked with its bytes as `skipped` when the analysis"
        " next begins: it tries again by itself, or restart the OAP;"
        " `skyfarer oap parked show 12` then shows it\n"
    )
    assert read_skips(ingest) == {POISON: "by an operator"}
    assert files_of_the_queue(ingest) == before, "the queue is only read"


def test_skip_keeps_the_reason_and_the_records_skipped_before(ingest: Path, tmp_path: Path) -> None:
    where = ("--data-dir", tmp_path)
    assert skip("--at", POISON, *where, "--reason", "stops every start") == 0
    assert skip("--at", COMMITTED, *where) == 0
    assert skip("--at", COMMITTED, *where) == 0
    assert read_skips(ingest) == {COMMITTED: "by an operator", POISON: "stops every start"}


def test_skip_needs_no_oap_that_runs(tmp_path: Path) -> None:
    where = tmp_path / "ingest"
    writer = writer_of(where)
    writer.start()
    writer.append(Kind.LOG, [b"log"])
    writer.stop(1.0)
    assert skip("--at", 0, "--data-dir", tmp_path) == 0
    assert list(read_skips(where)) == [0]
    writer = writer_of(where)
    writer.start()
    writer.stop(1.0)
    assert list(read_skips(where)) == [0], "a start of the receiver keeps the list"


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (0, "record 0 was analysed already: the analysis is at record 3;"),
        (COMMITTED - 1, "record 2 was analysed already: the analysis is at record 3;"),
        (WRITING, "record 43 is not in the queue yet: the next to come is 43\n"),
        (1 << 62, "is not in the queue yet"),
    ],
)
def test_a_number_that_no_record_waits_under_is_refused(
    ingest: Path, capsys: pytest.CaptureFixture[str], at: int, says: str
) -> None:
    assert skip("--at", at) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert read_skips(ingest) == {}


@pytest.mark.parametrize("at", ["x", "-1", "1.5", "", "٣", str((1 << 62) + 1)])
def test_text_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str], at: str) -> None:
    with pytest.raises(SystemExit) as end:
        skip("--at", at)
    assert end.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_directory_without_a_queue_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert skip("--at", 0, "--data-dir", tmp_path) == 2
    assert capsys.readouterr().err == (
        f"skyfarer: there is no ingest queue in {tmp_path}/ingest; name the data directory of the"
        " OAP with --data-dir, or its file with --config\n"
    )


def test_a_record_that_is_damaged_in_the_queue_can_be_skipped(
    ingest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (ingest / "00000.seg").open("r+b") as file:
        file.seek(PAGE_BYTES + 20 * SLOT_BYTES)
        file.write(b"\xff")
    assert skip("--at", 20) == 0
    assert "record 20 (damaged in the queue, so without its bytes) will be parked" in (
        capsys.readouterr().out
    )
    assert list(read_skips(ingest)) == [20]


def test_a_record_that_was_overwritten_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "ingest"
    settings = QueueSettings(
        where, 16 * KIB, 64 * KIB, 4 * KIB, consumers=("analysis",), when_full="drop_oldest"
    )
    writer = Writer(settings)
    writer.start()
    for _ in range(40):
        writer.append(Kind.LOG, [bytes(2000)])
    writer.stop(1.0)
    assert skip("--at", 0, "--data-dir", tmp_path) == 2
    assert "record 0 is no longer in the queue: the oldest is " in capsys.readouterr().err


def test_a_damaged_list_is_one_sentence(ingest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ingest / "skips.json").write_text("{")
    assert skip("--at", POISON) == 1
    said = capsys.readouterr().err
    assert f"{ingest}/skips.json is damaged" in said
    assert len(said.splitlines()) == 1


def test_the_help_says_when_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("queue",), ("queue", "skip")):
        with pytest.raises(SystemExit):
            main(["oap", *arguments, "--help"])
        said = capsys.readouterr().out
        assert "last resort" in said
        assert "skyfarer oap queue skip --at 4711" in said


def test_a_command_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["oap", "queue"])
    assert "a command is missing (skip)" in capsys.readouterr().err

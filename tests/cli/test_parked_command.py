"""`skyfarer oap parked …` against the door of an OAP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.parked_contract import RECORDS, park
from oap.admin.rig import BEFORE, Rig
from skyfarer.cli.main import main
from skyfarer.cli.parked import dump
from skyfarer.oap.core.storage import Parked


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("SKYFARER_DATA_DIR", str(tmp_path))
    rig = Rig(tmp_path)
    rig.start()
    park(rig.storage, *RECORDS)
    yield rig
    rig.stop()


def run(*arguments: str) -> int:
    return main(["oap", "parked", *arguments])


def test_list_is_a_table_with_the_newest_last(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("retry", "0") == 0
    capsys.readouterr()
    assert run("list", "--limit", "4") == 0
    assert run("list", "--reason", "undecodable") == 0
    assert run("list", "--reason", "oversize") == 0
    assert capsys.readouterr().out.splitlines() == [
        "sequence  kind        bytes  retried  reason",
        "       1  V2_SEGMENT      3  no       unknown_instance: 7 was never given out",
        "       2  SEGMENT         0  no       undecodable: no message",
        "       3  SEGMENT         5  no       corrupt: its checksum fails",
        "       4  NONE            0  no       overflow: overwritten",
        "sequence  kind     bytes  retried  reason",
        "       0  SEGMENT      4  as 20    undecodable: no message",
        "       2  SEGMENT      0  no       undecodable: no message",
        "no records are parked as oversize",
    ]


def test_list_as_json_is_a_line_a_record(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["sequence"] for line in lines] == [0, 1, 2, 3, 4]
    assert lines[1]["kind"] == "V2_SEGMENT"


def test_show_has_the_facts_and_the_bytes(
    rig: Rig, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    park(rig.storage, Parked(5, 1, "oversize: spans", b"\x00\xffab" * 2000))
    assert main(["oap", "parked", "show", "5", "--data-dir", str(tmp_path)]) == 0
    text = capsysbinary.readouterr().out.decode().splitlines()
    assert text[1:5] == [
        "sequence  5",
        "kind      SEGMENT",
        "reason    oversize: spans",
        "bytes     8000",
    ]
    assert text[7] == f"00000000  {' '.join(['00 ff 61 62'] * 4)}  {'..ab' * 4}"
    assert text[-1] == "… 3904 bytes more; --raw has them all"
    assert run("show", "5", "--raw") == 0
    assert capsysbinary.readouterr().out == b"\x00\xffab" * 2000


def test_a_short_last_row_of_a_dump_is_aligned() -> None:
    assert list(dump(b"ab")) == ["00000000  61 62" + " " * 44 + "ab"]


def test_retry_says_what_became_of_them_and_fails_if_any_is_left(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    park(rig.storage, Parked(BEFORE, 1, "undecodable: still", b""))
    assert run("retry", "2", "3") == 1
    said = capsys.readouterr()
    assert said.err == "record 3 is not sent: its bytes were damaged in the queue\n"
    assert said.out == (
        "1 record sent again: 0 analysed, 1 parked again, 0 waiting for analysis\n"
        f"record {BEFORE} is parked: undecodable: still\n"
    )
    rig.applied = BEFORE + 1
    assert run("retry", "--all", "--wait", "0") == 0
    assert capsys.readouterr().out == (
        "3 records sent again: 0 analysed, 0 parked again, 3 waiting for analysis\n"
    )
    assert run("retry", "--reason", "undecodable") == 0
    assert capsys.readouterr().out == "0 records sent again\n"


@pytest.mark.parametrize("which", [(), ("1", "--all"), ("--all", "--reason", "corrupt")])
def test_retry_wants_to_be_told_which(
    capsys: pytest.CaptureFixture[str], which: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as end:
        run("retry", *which)
    assert end.value.code == 2
    assert "their numbers, or --reason, or --all" in capsys.readouterr().err


def test_without_an_oap_there_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("list", "--data-dir", str(tmp_path)) == 1
    assert capsys.readouterr().err == (
        f"skyfarer: no OAP with its data in {tmp_path} answers: No such file or directory;"
        " start it, or name its directory with --data-dir or its file with --config\n"
    )


def test_a_command_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run()
    assert "a command is missing (list or show or retry)" in capsys.readouterr().err

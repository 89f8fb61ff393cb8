"""`skyfarer oal check`: what it prints and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyfarer.cli.main import main

ONE = "a = from(Service.*).cpm();\n"
TWO = "b = from(Service.*).count();\nc = from(Service.latency).sum();\n"


def test_files_that_make_sense_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.oal", tmp_path / "two.oal"
    one.write_text(ONE)
    two.write_text(TWO)
    assert main(["oal", "check", str(one)]) == 0
    assert main(["oal", "check", str(one), str(two)]) == 0
    assert capsys.readouterr().out == "1 metric\n3 metrics\n"


def test_mistakes_of_all_files_are_listed_and_the_code_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.oal", tmp_path / "two.oal"
    one.write_text(ONE.replace("Service", "Servise"))
    two.write_text(TWO.replace("sum", "summ"))
    assert main(["oal", "check", str(one), str(two)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"{one}:1:10: there is no source 'Servise'; did you mean 'Service'?",
        f"{two}:2:27: there is no function 'summ'; did you mean 'sum'?",
    ]


def test_a_file_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "binary.oal"
    binary.write_bytes(b"\xff\xfe")
    assert main(["oal", "check", str(tmp_path / "none.oal")]) == 2
    assert main(["oal", "check", str(binary)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"skyfarer: {tmp_path / 'none.oal'} cannot be read: No such file or directory",
        f"skyfarer: {binary} is not UTF-8; save it as such",
    ]

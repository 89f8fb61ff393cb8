"""Spark's class archive: it is mapped when it fits, and nothing breaks when it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oap.pipeline.bench import PLAN
from skyfarer.base.errors import PermanentError
from skyfarer.oap.pipeline import archive
from skyfarer.oap.pipeline.exercise import make_archive
from skyfarer.oap.pipeline.java import java_home


@pytest.fixture
def java(tmp_path: Path) -> Path:
    return java_home(os.environ, tmp_path) / "bin" / "java"


def test_a_session_maps_the_archive_of_its_installation(java: Path, tmp_path: Path) -> None:
    prepare = [sys.executable, "-m", "skyfarer.cli", "oap", "prepare"]
    said = subprocess.run(prepare, capture_output=True, text=True, check=True)
    assert said.stdout == f"{archive.archive_for(java)}\n"
    script = (
        "from pathlib import Path\n"
        "from skyfarer.oap.pipeline.session import SparkSettings, spark_session\n"
        f"session = spark_session(SparkSettings('local[1]', scratch=Path({str(tmp_path)!r})))\n"
        "session.sql('select 1').collect()\n"
        "name = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName()\n"
        "print(Path('/proc', name.split('@')[0], 'maps').read_text())\n"
    )
    mapped = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert str(archive.archive_for(java)) in mapped.stdout


def test_where_there_is_no_archive_java_gets_no_option(tmp_path: Path) -> None:
    assert archive.options(tmp_path / "no" / "java") == ""


def test_java_passes_over_an_archive_that_is_none(java: Path, tmp_path: Path) -> None:
    ruined = tmp_path / "ruined.jsa"
    ruined.write_bytes(b"\x00" * 100_000)
    said = subprocess.run(
        [java, f"-XX:SharedArchiveFile={ruined}", archive.QUIET, "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "version" in said.stderr
    assert said.stdout == ""


def test_an_installation_that_cannot_be_written_to_is_told_before_anything_starts(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = tmp_path / "installation"
    installation.write_text("a file where a directory is wanted")
    monkeypatch.setattr(sys, "prefix", str(installation))
    with pytest.raises(PermanentError, match="no archive can be kept in"):
        make_archive(java, PLAN, tmp_path)

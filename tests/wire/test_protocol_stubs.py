"""The generator of the protocol stubs, run on a copy of the sources."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import skyfarer.wire

TOOL = Path(__file__).resolve().parents[2] / "tools" / "generate_stubs.py"
WIRE = Path(skyfarer.wire.__file__).parent


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_stubs", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def src(tmp_path: Path) -> Path:
    shutil.copytree(WIRE / "proto", tmp_path / "src/skyfarer/wire/proto")
    return tmp_path / "src"


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def test_installed_stubs_are_those_of_the_sources(src: Path) -> None:
    load_tool().generate(src)
    assert contents(src / "skyfarer/wire/generated") == contents(WIRE / "generated")


def test_second_run_leaves_the_stubs_untouched_and_nothing_behind(src: Path) -> None:
    generate = load_tool().generate
    generate(src)
    before = (src / "skyfarer/wire/generated").stat()
    generate(src)
    after = (src / "skyfarer/wire/generated").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert {path.name for path in (src / "skyfarer/wire").iterdir()} == {"generated", "proto"}


def test_removed_source_takes_its_stubs_along(src: Path) -> None:
    generate = load_tool().generate
    generate(src)
    (src / "skyfarer/wire/proto/remote.proto").unlink()
    generate(src)
    names = contents(src / "skyfarer/wire/generated").keys()
    assert "trace_pb2.py" in names
    assert not [name for name in names if name.startswith("remote")]


def test_broken_source_leaves_the_old_stubs_whole(
    src: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tool = load_tool()
    tool.generate(src)
    before = contents(src / "skyfarer/wire/generated")
    (src / "skyfarer/wire/proto/trace.proto").write_text("message {")
    with pytest.raises(tool.StubsError, match="protoc refused"):
        tool.generate(src)
    assert "trace.proto" in capfd.readouterr().err
    assert contents(src / "skyfarer/wire/generated") == before
    assert {path.name for path in (src / "skyfarer/wire").iterdir()} == {"generated", "proto"}


def test_no_stub_calls_a_v2_path_that_has_a_package(src: Path) -> None:
    load_tool().generate(src)
    texts = [path.read_text() for path in (src / "skyfarer/wire/generated").glob("*_grpc.py")]
    assert any("/skywalking.v3.ManagementService/keepAlive" in text for text in texts)
    assert not any("skywalking.v2" in text for text in texts)


def test_missing_compiler_is_one_sentence(src: Path) -> None:
    script = src.parent / "tools" / TOOL.name
    script.parent.mkdir()
    shutil.copy(TOOL, script)
    # Neither site-packages nor the environment, so that grpcio-tools is really absent.
    done = subprocess.run([sys.executable, "-I", "-S", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "grpcio-tools is needed to compile the .proto files: pip install grpcio-tools."
    ]

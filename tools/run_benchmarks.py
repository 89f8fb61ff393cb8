"""Runs benchmarks one after the other, and says at the end which goals were missed.

    run_benchmarks.py benchmarks/bench_queue.py benchmarks/bench_storage.py

Figures go to standard output as they come, a JSON line each. One that fails does not keep the next
from running. Exit code 1 when a goal was missed or a file failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def complaints(file: str) -> Iterator[str]:
    """What is wrong with its figures; they are printed on the way."""
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if (missed := _missed(line)) is not None:
                yield missed
    if process.returncode:
        yield f"{Path(file).name} ended with code {process.returncode}"


def _missed(line: str) -> str | None:
    try:
        figure = json.loads(line)
    except ValueError:
        return None
    if not isinstance(figure, dict) or figure.get("ok") is not False:
        return None
    return f"{figure['figure']} is {figure['value']} {figure['unit']}, wanted {figure['goal']}"


def main(files: Sequence[str]) -> int:
    found = [complaint for file in files for complaint in complaints(file)]
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

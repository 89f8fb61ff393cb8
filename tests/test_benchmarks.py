"""How benchmarks are run: all of them, and with a word on every goal that was missed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOOD = 'print(\'{"figure": "a", "value": 2, "unit": "s", "goal": "<= 3", "ok": true}\')'
MISSED = 'print(\'{"figure": "b", "value": 4, "unit": "s", "goal": "<= 3", "ok": false}\')'
FAILS = "raise SystemExit(7)"


def run(directory: Path, *texts: str) -> tuple[int, list[str], list[str]]:
    files = [directory / f"bench_{number}.py" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "run_benchmarks.py", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


def test_benchmarks_that_keep_their_goals_end_well(tmp_path: Path) -> None:
    code, shown, said = run(tmp_path, GOOD, "print('not a figure')")
    assert (code, len(shown), said) == (0, 2, [])


def test_a_missed_goal_or_a_failure_keeps_no_other_from_running_and_is_told_at_the_end(
    tmp_path: Path,
) -> None:
    code, shown, said = run(tmp_path, MISSED, FAILS, GOOD)
    assert (code, len(shown)) == (1, 2)
    assert said == ["b is 4 s, wanted <= 3", "bench_1.py ended with code 7"]

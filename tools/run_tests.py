"""Runs every check and every test, in lanes: each a process of its own, all at once, so no core
stands idle. A test lane is a pytest; what `make check` and `make prepared` do are lanes too, since
the longest test waits for most of its time and must begin first. A failed check ends the rest.

The queue has a lane of its own because its tests die thousands of deaths in children forked from
pytest, and a fork costs what the process weighs: three times as much where Spark, Arrow and the
page were imported for other tests.

A lane takes the tests under its paths that no other lane names more closely, so every test runs
once. Only whole programs are waited for with deadlines that a busy machine could miss: their lanes
go first, as soon as Spark is prepared. The faults of the analysis are the longest way, dozens of
JVMs one after the other, and wait for most of their time, so they begin as early. The storages, a
third of the other rooms, take the place of the checks when those are done, and the analysis that of
the storages: a machine with too much to do at once does less of it. The queue fills what is left.
The coordinators' tests wait for sessions to expire, and cost next to nothing.

Progress is shown as it comes, under the lane's name, and what a lane has to report when it ends.
The names of what failed come last, for whoever is shown only the end. Arguments go to every lane's
pytest.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NO_TESTS = 5
"""pytest's code for a lane that the given arguments leave nothing to run."""
COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b(?=.* in [\d.]+s)")
"""In pytest's last line."""
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The tests start hundreds of interpreters: without bytecode each would spend half of its start on
compiling what it imports."""
printing = threading.Lock()


@dataclass(frozen=True)
class Lane:
    """Of the tests under `paths`, or of one `verb` of make; it begins when those it is `after`
    have ended, well or not."""

    name: str
    paths: tuple[str, ...] = ()
    nice: int = 0
    after: tuple[str, ...] = ()
    verb: str = ""

    def command(self) -> list[str]:
        if self.verb:
            return ["make", "--no-print-directory", self.verb]
        ignored = [
            f"--ignore={path}"
            for lane in LANES
            if lane is not self
            for path in lane.paths
            if any(Path(path) != Path(own) and Path(path).is_relative_to(own) for own in self.paths)
        ]
        cache = f"cache_dir=.pytest_cache/{self.name}"
        return [sys.executable, "-m", "pytest", *self.paths, *ignored, "-o", cache]


CHECK, PREPARED = "check", "prepared"
LANES = (
    Lane("outage", ("tests/e2e/test_oap_away.py",)),
    Lane(PREPARED, verb="prepared"),
    Lane(CHECK, verb="check", nice=5),
    Lane("programs", ("tests/e2e",), after=(PREPARED,)),
    Lane("commands", ("tests/cli",), nice=5, after=(PREPARED,)),
    Lane("satellite", ("tests/satellite", "tests/wire"), nice=5),
    Lane("faults", ("tests/oap/pipeline/faults",), nice=10, after=(PREPARED,)),
    Lane("analysis", ("tests/oap/pipeline",), nice=10, after=(PREPARED, "storage")),
    Lane("cluster", ("tests/oap/cluster",), nice=10),
    Lane("storage", ("tests/oap/storage",), nice=10, after=(CHECK,)),
    Lane("rooms", ("tests",), nice=10),
    Lane("queue", ("tests/queue",), nice=15),
)


class Run(threading.Thread):
    def __init__(self, lane: Lane, arguments: list[str]) -> None:
        super().__init__()
        self.lane = lane
        self.code = 1
        self.cpu_s = 0.0
        self.counts: dict[str, int] = {}
        self.broken: list[str] = []
        self.before: list[Run] = []
        self._arguments = [] if lane.verb else arguments
        self._over = False
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        """The first rule of pytest's opens the progress, the second the report."""
        for run in self.before:
            run.join()
        if self._over:
            return
        self._process = process = subprocess.Popen(
            ["nice", "-n", str(self.lane.nice), *self.lane.command(), *self._arguments],
            cwd=ROOT,
            env=ENVIRON,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        rules, report = 0, []
        for line in process.stdout:
            rules += line.startswith("====")
            self.counts.update({word: int(n) for n, word in COUNTS.findall(line)} if rules else {})
            if rules < 2:
                self._show([line])
            else:
                report.append(line)
        self._show(report)
        self.broken = [line for line in report if line.startswith(("FAILED ", "ERROR "))]
        _, status, used = os.wait4(process.pid, 0)
        self.code = process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = used.ru_utime + used.ru_stime

    def interrupt(self) -> None:
        """As Ctrl-C does, so that pytest ends the programs its tests have started."""
        self._over = True
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def _show(self, lines: list[str]) -> None:
        if self._over:
            return
        with printing:
            sys.stdout.writelines(f"{self.lane.name:9} | {line}" for line in lines)
            sys.stdout.flush()


def main(arguments: list[str]) -> int:
    start_s = time.monotonic()
    runs = {lane.name: Run(lane, arguments) for lane in LANES}
    for run in runs.values():
        run.before = [runs[name] for name in run.lane.after]

    def interrupt(*_: object) -> None:
        for run in runs.values():
            run.interrupt()

    # Ctrl-C reaches every lane by itself, too. Not SIG_IGN, which the lanes would inherit.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, interrupt)
    for run in runs.values():
        run.start()
    runs[CHECK].join()
    if runs[CHECK].code:
        interrupt()
    for run in runs.values():
        run.join()
    passed = (0, NO_TESTS) if arguments else (0,)
    failed = [run.lane.name for run in runs.values() if run.code not in passed]
    if runs[CHECK].code:
        failed = [f"{CHECK}, and the tests were ended"]
    for run in runs.values():
        sys.stdout.writelines(run.broken)
    verdict = f"failed: {', '.join(failed)}" if failed else "all lanes passed"
    spent = ", ".join(f"{run.lane.name} {run.cpu_s:.0f}" for run in runs.values())
    print(f"seconds of processor time: {spent}")
    print(f"{verdict}, in {time.monotonic() - start_s:.0f} s")
    total = Counter[str]()
    for run in runs.values():
        total.update(run.counts)
    broken = total["failed"] + total["error"] + total["errors"]
    print(f"{total['passed']} passed, {broken} failed, {total['skipped']} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

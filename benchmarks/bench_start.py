"""What an archive of Spark's classes saves of a start: a session and the warm-up of the analysis,
with the archive of this installation (made when it is missing) and without, in turns.

CPU time of the JVM: that is what a start takes from its neighbours.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import figure
from skyfarer.oap.boot.definitions import plan_from
from skyfarer.oap.boot.settings import AnalyzerConfig
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.session import SparkSettings, spark_session
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.pipeline.warmup import warm_up

TURNS = 3
WITH, WITHOUT = "with", "without"


def start(java_options: str | None) -> float:
    """CPU seconds of the JVM, until it could take a batch."""
    plan = plan_from(AnalyzerConfig().oalActiveFiles, ())
    with tempfile.TemporaryDirectory() as scratch:
        directory, analysis = Path(scratch), AnalysisSettings()
        session = spark_session(SparkSettings("local[2]", scratch=directory), java_options)
        session.dataSource.register(QueueSource)
        warm_up(session, directory, 2, Metrics(plan, analysis), analysis)
        name = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName()
        ticks = Path("/proc", name.split("@")[0], "stat").read_text().split()[13:15]
        session.stop()
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def started(how: str) -> float:
    """In a process of its own, which has one JVM."""
    ran = subprocess.run(
        [sys.executable, __file__, how], stdout=subprocess.PIPE, text=True, check=True
    )
    return float(ran.stdout)


def main() -> None:
    if sys.argv[1:]:
        print(start(None if sys.argv[1] == WITH else ""))
        return
    subprocess.run([sys.executable, "-m", "skyfarer.cli", "oap", "prepare"], check=True, stdout=2)
    spent = {how: [] for how in (WITHOUT, WITH)}
    for _ in range(TURNS):
        for how, times in spent.items():
            times.append(started(how))
    without, own = (statistics.median(times) for times in spent.values())
    figure("start_jvm_cpu_without_archive", without, "s of CPU")
    figure("start_jvm_cpu_with_archive", own, "s of CPU")
    figure("start_jvm_cpu_to_one_without_archive", own / without, "ratio", at_most=0.85)


if __name__ == "__main__":
    main()

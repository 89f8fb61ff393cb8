"""Told to stop, an OAP ends soon and with 0, whenever and however it is told.

Spark takes long to start, and whoever types Ctrl+C then means it. A service manager signals the
whole process group, so that Spark's JVM may be gone before anybody asks it to end.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from skyfarer.testing.programs import Oap, eventually

SCRIPT_OR_JVM, JVM = "/pyspark/", "org.apache.spark.deploy.SparkSubmit"
"""What the command of Spark's process has in it: a script that looks for Java, which becomes it."""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("begun", [SCRIPT_OR_JVM, JVM])
def test_told_to_stop_while_spark_starts_it_ends_at_once_with_0(tmp_path: Path, begun: str) -> None:
    oap = Oap(tmp_path)
    oap.spawn()
    try:
        eventually(lambda: bool(children(oap, begun)), 120, f"a child runs {begun}")
        (jvm,) = children(oap, begun)
        assert oap.stop() == 0
        eventually(lambda: gone(jvm), 60, "Spark's JVM is gone too")
    finally:
        oap.kill()
    log = oap.log.read_text()
    assert "stopped while starting" in log
    assert "analysis begins" not in log
    assert "Traceback" not in log


def test_a_signal_to_the_whole_process_group_ends_it_with_0(own_oap: Oap) -> None:
    os.killpg(own_oap.pid, signal.SIGTERM)
    eventually(own_oap.has_ended, 60, "the OAP has ended")
    assert own_oap.stop() == 0
    assert "could not stop" not in own_oap.log.read_text()


def children(oap: Oap, running: str) -> list[psutil.Process]:
    return [one for one in psutil.Process(oap.pid).children() if running in command(one)]


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):  # it has just ended
        return ""


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE

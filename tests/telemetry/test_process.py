from __future__ import annotations

import os
import time
from pathlib import Path

from skyfarer import __version__
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.process import ProcessMetrics
from telemetry.prometheus_text import parse


def test_this_process_is_read_from_the_kernel() -> None:
    registry = Registry()
    ProcessMetrics("oap").register(registry)
    families = parse(registry.render())
    me = (("process", "oap"),)

    assert families["process_resident_memory_bytes"].samples[me] > 1_000_000
    assert families["process_open_fds"].samples[me] >= 3
    assert families["process_cpu_seconds_total"].samples[me] > 0
    assert 0 < families["process_start_time_seconds"].samples[me] <= time.time() + 1
    assert families["build_info"].samples == {(*me, ("version", __version__)): 1}


def test_a_command_with_spaces_and_brackets_does_not_shift_the_fields(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    numbers = list(range(3, 53))
    numbers[22 - 3] = 5 * ticks
    (tmp_path / "self" / "fd").mkdir(parents=True)
    (tmp_path / "self" / "fd" / "0").touch()
    stat = "1 (a) b (c)) S " + " ".join(map(str, numbers[1:]))
    (tmp_path / "self" / "stat").write_text(stat)
    (tmp_path / "stat").write_text("cpu 1 2 3\nbtime 1000\n")
    metrics = ProcessMetrics("oap", tmp_path)

    assert metrics.cpu_s() == (14 + 15) / ticks
    assert metrics.resident_bytes() == 24 * os.sysconf("SC_PAGE_SIZE")
    assert metrics.open_fds() == 1
    assert metrics.started_s() == 1005

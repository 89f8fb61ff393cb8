"""Bounds on the process that decodes: processor time of a run, and memory.

A decoder that neither returns nor raises, or that asks for memory without end, holds its worker,
and native code cannot be interrupted from Python. So the kernel ends it: SIGPROF, whose default is
the end of the process, when the run's processor time is spent, and a refused allocation when the
memory is. Processor time, since a paused or busy machine is no fault of the data.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyfarer.base.units import GIB, KIB

_MEMORY: Final = "VmData:"


@dataclass(frozen=True)
class Bounds:
    """`run_cpu_s` is for a run of at most 64 MiB, which takes about a second; `record_cpu_s` for a
    record alone; `memory_bytes` for all that a worker holds beside what it began with."""

    run_cpu_s: float = 30.0
    record_cpu_s: float = 5.0
    memory_bytes: int = 2 * GIB


_limited = set[int]()
"""The processes, by id, that have their limit: a fork has its own to come."""


def limit_memory(bounds: Bounds) -> None:
    """Limits this process for the rest of its life, at the first call, and has it leave no core
    file. Maps of the queue's files do not count."""
    if os.getpid() in _limited:
        return
    _limited.add(os.getpid())
    limit = _data_bytes() + bounds.memory_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@contextmanager
def limited_cpu(cpu_s: float) -> Iterator[None]:
    """Ends this process where the block takes more processor time."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _data_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(_MEMORY):
            return int(line.split()[1]) * KIB
    return 0

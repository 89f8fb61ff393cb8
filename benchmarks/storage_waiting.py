"""Whether whoever reads waits for whoever writes.

The same questions are asked by themselves, and then while batches as large as the pipeline brings
them are stored one after the other, their checkpoints included. Nobody says how much slower a busy
storage may answer; that it answers is held to: the longest wait has a bound.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

import week
from figures import figure
from skyfarer.base.units import MIB
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.traces import TraceCondition, TraceOrder

STORED: Final = 100_000
BATCH: Final = 20_000
BATCHES: Final = 10
ALONE_S: Final = 10.0
LONGEST_MS_MAX: Final = 1000.0
SEGMENTS_MAX: Final = 1_000
PAGE: Final = 20
DAY: Final = week.day_bucket(0) * 10**6, week.day_bucket(0) * 10**6 + 235959

Question = Callable[[], object]


class Waiting(Protocol):
    name: str
    storage: Reader

    def look_up(self, day: int, segment_id: str) -> object: ...

    def store_segments(self, rows: pa.Table) -> None: ...


class Asking:
    """Each question in turn, for as long as it is wanted; what it took by its name."""

    def __init__(self, waiting: Waiting, stored: int) -> None:
        self._waiting, self._stored, self._random = waiting, stored, Random(7)

    def _drawn(self, kind: int, fan: int) -> str:
        number = self._random.randrange(self._stored) // fan
        (found,) = week.hex_ids(kind, 0, np.array([number])).to_pylist()
        return str(found)

    def _questions(self) -> Mapping[str, Question]:
        segment, trace = self._drawn(week.SEGMENT, 1), self._drawn(week.TRACE, week.FAN)
        service = week.service_name(self._random.randrange(week.SERVICES))
        condition = TraceCondition(between=DAY, service_id=ids.service_id(service))
        storage = self._waiting.storage
        return {
            "primary_key": lambda: self._waiting.look_up(0, segment),
            "trace": lambda: storage.trace(trace, SEGMENTS_MAX, 16 * MIB),
            "search": lambda: storage.traces(condition, TraceOrder.START_TIME, 0, PAGE),
        }

    def until(self, over: Callable[[], bool]) -> dict[str, list[float]]:
        spent: dict[str, list[float]] = {}
        while not over():
            for name, question in self._questions().items():
                begun_s = time.perf_counter()
                assert question(), f"{name} has found nothing: it would be measured for nothing"
                spent.setdefault(name, []).append(time.perf_counter() - begun_s)
        return spent


def measure(
    waiting: Waiting, stored: int = STORED, batches: int = BATCHES, alone_s: float = ALONE_S
) -> None:
    for rows in week.segments(0, stored):
        waiting.store_segments(rows)
    asking, until_s = Asking(waiting, stored), time.monotonic() + alone_s
    alone = asking.until(lambda: time.monotonic() >= until_s)
    brought = list(week.segments(1, batches * BATCH))
    writer = threading.Thread(target=_store, args=[waiting, iter(brought)])
    begun_s = time.perf_counter()
    writer.start()
    beside = asking.until(lambda: not writer.is_alive())
    writer.join()
    _report(waiting.name, alone, beside, (time.perf_counter() - begun_s) / len(brought))


def _store(waiting: Waiting, batches: Iterator[pa.Table]) -> None:
    for rows in batches:
        waiting.store_segments(rows)


def _report(
    provider: str,
    alone: Mapping[str, list[float]],
    beside: Mapping[str, list[float]],
    each_s: float,
) -> None:
    figure(
        f"storage_{provider}_waiting_batch", each_s * 1e3, f"ms, {BATCH} segments, while it is read"
    )
    for name, some in beside.items():
        tail, quiet = _tail(some), _tail(alone[name])
        unit = f"ms, p99 of {len(some)} beside batches; {quiet * 1e3:.2f} alone"
        figure(f"storage_{provider}_waiting_{name}", tail * 1e3, unit)
        figure(f"storage_{provider}_waiting_{name}_times", tail / quiet, "of p99 alone")
        figure(
            f"storage_{provider}_waiting_{name}_longest",
            max(some) * 1e3,
            f"ms; {max(alone[name]) * 1e3:.2f} alone",
            at_most=LONGEST_MS_MAX,
        )


def _tail(some: list[float]) -> float:
    return statistics.quantiles(some, n=100)[-1]

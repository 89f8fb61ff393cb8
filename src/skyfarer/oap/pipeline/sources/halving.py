"""Bisection: the record at fault is found by working on halves of what failed.

Whatever is raised counts, Rust's panics among it, which derive from BaseException. Two faults are
not found here, and are left to the probe: one that ends the process, and a lack of memory, which
may be due to all the other records.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")

REASON_CHARS_MAX: Final = 300


def halved(count: int, work: Callable[[int, int], T]) -> tuple[list[tuple[int, T]], dict[int, str]]:
    """Results of `work(start, end)` over all of 0 … count, in order, each with its start, and
    position → reason of every place where `work` fails on that place alone.

    `work` is called once if it succeeds. Where it raises it is called for both halves, so k faults
    among n places cost k·log n further calls. A count of 0 is no call.
    """
    done: list[tuple[int, T]] = []
    faults: dict[int, str] = {}
    if count and (why := _fault(work, 0, count, done)):
        with _quiet():
            pending = [(0, count, why)]
            while pending:
                start, end, why = pending.pop()
                middle = (start + end) // 2
                if middle == start:
                    faults[start] = why
                    continue
                for half in ((start, middle), (middle, end)):
                    if why := _fault(work, *half, done):
                        pending.append((*half, why))
    done.sort(key=lambda one: one[0])
    return done, faults


def _fault(work: Callable[[int, int], T], start: int, end: int, done: list[tuple[int, T]]) -> str:
    """Adds the result to `done`; returns the reason where there is none."""
    try:
        done.append((start, work(start, end)))
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise  # these say nothing of a record
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        said = str(error) if type(error) is ValueError else ""
        return (said or f"{type(error).__name__}: {error}")[:REASON_CHARS_MAX]
    return ""


@contextmanager
def _quiet() -> Iterator[None]:
    """Closes standard error to native code, which reports each panic there: the first has been
    reported, and a stranger who sends many must not fill the log with the rest."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)

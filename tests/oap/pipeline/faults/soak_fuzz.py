"""Millions of hostile messages through a worker's code: `make soak`, not a part of `make test`.

Batches are made from the seed and their number, so that any of them can be made again, and each is
worked on in a process of its own pool, with one decoder and then the other in turn. Where a batch
fails, or ends its process, or does not end, it is halved until one message is left, which is
printed and written to a file.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final

import psutil
import pytest

from oap.pipeline.laced import Record, faults_of, outcome_of, parked, records, rows_of
from skyfarer.oap.pipeline.sources.decode import DECODERS
from skyfarer.wire.rpc import Kind

MESSAGES = int(os.environ.get("SKYFARER_FUZZ_MESSAGES", "5_000_000"))
SEED = int(os.environ.get("SKYFARER_SEED", "0")) or secrets.randbelow(2**32) + 1
BATCH: Final = 4_000
WORKERS: Final = os.cpu_count() or 1
ROUND: Final = 8 * WORKERS
"""Batches that are begun before anything is said."""
PATIENCE_S: Final = 300.0
"""For a round, and for each half of a batch that is suspected: hundreds of times what it takes."""


def batch(number: int) -> list[Record]:
    return records(Random(f"{SEED}-{number}"), BATCH)


def decoder_of(number: int) -> str:
    return sorted(DECODERS)[number % len(DECODERS)]


def verdict(sent: Sequence[Record], decoder: str) -> tuple[str, int]:
    """The first fault of a batch, or nothing, and how many records are parked."""
    os.environ["RUST_BACKTRACE"] = "0"
    try:
        found = outcome_of(rows_of(sent, decoder))
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        return f"{type(error).__name__}: {error}", 0
    return "".join(faults_of(sent, found)[:1])[:500], parked(found)


def worked(seed: int, number: int) -> tuple[int, str, int]:
    """In a process of the pool, which has read the environment anew but for the seed."""
    global SEED
    SEED = seed
    return number, *verdict(batch(number), decoder_of(number))


def round_of(numbers: Sequence[int]) -> Iterator[tuple[int, str, int]]:
    """The verdicts of these batches; of those whose pool broke or stood still as well."""
    left = set(numbers)
    pool = ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn"))
    try:
        for future in as_completed([pool.submit(worked, SEED, n) for n in numbers], PATIENCE_S):
            found = future.result()
            left.discard(found[0])
            yield found
    except (BrokenProcessPool, TimeoutError):
        yield from ((n, why, 0) for n in sorted(left) if (why := alone(batch(n), decoder_of(n))))
    finally:
        ended(pool)


def alone(sent: Sequence[Record], decoder: str) -> str:
    """The fault of a batch in a process of its own, which may end or stand still; else nothing."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    try:
        return pool.submit(verdict, sent, decoder).result(PATIENCE_S)[0]
    except BrokenProcessPool:
        return "the process ended"
    except TimeoutError:
        return f"no end within {PATIENCE_S:.0f} s"
    finally:
        ended(pool)


def ended(pool: ProcessPoolExecutor) -> None:
    """Also of processes that stand still."""
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in workers:
        if psutil.pid_exists(process.pid or 0):
            process.kill()


def narrowed(sent: Sequence[Record], fails: Callable[[Sequence[Record]], str]) -> list[Record]:
    """The smallest half of a half that still fails."""
    found = list(sent)
    while len(found) > 1:
        middle = len(found) // 2
        halves = (found[:middle], found[middle:])
        failing = next((half for half in halves if fails(half)), None)
        if failing is None:
            break
        found = failing
    return found


def told(number: int, why: str) -> str:
    """The messages of a batch that fails, as hex, which are also in a file."""
    decoder = decoder_of(number)
    found = narrowed(batch(number), lambda half: alone(half, decoder))
    lines = [f"{Kind(one.kind).name} {one.payload.hex()}" for one in found]
    path = Path(tempfile.gettempdir()) / f"skyfarer-fuzz-{SEED}-{number}.hex"
    path.write_text("\n".join(lines) + "\n")
    few = "\n".join(line[:4_000] for line in lines[:3])
    return f"seed {SEED}, batch {number}, {decoder}: {why}\n{few}\nin {path}"


@pytest.mark.timeout(0)
def test_no_hostile_message_of_millions_spoils_its_batch() -> None:
    print(f"seed {SEED}: {MESSAGES:,} messages in batches of {BATCH:,}", flush=True)
    begun_s, bad, done, batches = time.monotonic(), 0, 0, -(-MESSAGES // BATCH)
    for first in range(0, batches, ROUND):
        for number, why, dropped in round_of(range(first, min(first + ROUND, batches))):
            assert not why, told(number, why)
            bad, done = bad + dropped, done + BATCH
        rate = done / (time.monotonic() - begun_s)
        print(f"{done:,} messages, {bad:,} of them parked, {rate:,.0f} a second", flush=True)

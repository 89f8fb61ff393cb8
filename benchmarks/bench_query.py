"""What the query room adds to storage: every operation beside the bare storage query.

--days, --segments   a smaller week than the storage benchmark's 7 days of 200,000 segments
--place DIRECTORY    where the week is built, or was: it takes minutes; a temporary one unless told
--only NAME          one operation, or `crowd`, instead of all
--asked, --seconds   how often each is asked, and how long a crowd looks

Every operation goes through the HTTP door over a kept connection; what storage was asked for it is
asked again without the room, in turns, in the same process. The goal is twice the bare query, by
the 99th percentile of the clock, and by the mean and the 99th percentile of CPU time, which others
on the machine disturb less; the asking client is part of all of them. Of a dashboard the bare
queries are those of its expressions, each by itself.

The crowd are 50 dashboards in another process, answered for some seconds, beside as many threads
that make the bare queries of the same dashboards: what counts is how many a second of CPU time,
in turns, the best of each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path
from socket import create_server
from typing import Final

import query_crowd
import query_data
import week
from bench_storage import plans
from figures import figure
from query_asking import Question, Questions
from query_client import Client, Noted
from skyfarer.base.clock import SystemClock
from skyfarer.oap.boot.settling import settled
from skyfarer.oap.oal.compiler import compile_texts, shipped
from skyfarer.oap.query import QueryServer, durations
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Registry
from storage_merging import Spent, timed

TIMES_MAX: Final = 2.0
WARM_UP: Final = 5
CROWD: Final = "crowd"
DASHBOARDS: Final = 50
DOCUMENTS: Final = 200
ROUNDS: Final = 3


def serving(noted: Noted) -> QueryServer:
    health = Health()
    health.started()
    server = QueryServer(
        create_server(("127.0.0.1", 0)),
        noted,  # type: ignore[arg-type]
        lambda: Ledger(0, 0, 0, {}),
        health,
        Registry(),
        SystemClock(),
        UTC,
        plan=compile_texts(shipped()).plan,
    )
    server.start()
    return server


def bare(client: Client, noted: Noted, question: Question) -> list[Callable[[], object]]:
    """The storage queries of its parts."""
    noted.calls, noted.noting = [], True
    for part in question.parts:
        answer = client.ask(part)
        assert b'"errors"' not in answer and b'"error":"' not in answer, answer[:400]
    noted.noting = False
    return noted.calls


def replayed(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()


def newly(client: Client, wire: bytes) -> None:
    """As one who asks first: to note what storage is asked has made its points known."""
    durations.window_of.cache_clear()
    client.ask(wire)


def measure(
    name: str, make: Callable[[], Question], client: Client, noted: Noted, asked: int
) -> None:
    through, beside, reads = list[Spent](), list[Spent](), 0
    for number in range(WARM_UP + asked):
        question = make()
        calls = bare(client, noted, question)
        turns = (
            (through, lambda wire=question.wire: newly(client, wire)),
            (beside, lambda calls=calls: replayed(calls)),
        )
        for spent, work in turns if number % 2 else turns[::-1]:
            one = timed(work)  # type: ignore[arg-type]
            if number >= WARM_UP:
                spent.append(one)
        reads = len(calls)
    report(name, through, beside, reads)


def report(name: str, through: list[Spent], beside: list[Spent], reads: int) -> None:
    tails = [tail([one.wall_s for one in some]) for some in (through, beside)]
    medians = [statistics.median(one.wall_s for one in some) for some in (through, beside)]
    cpu = [statistics.mean(one.cpu_s for one in some) for some in (through, beside)]
    of = f"{reads} storage queries" if reads != 1 else "one storage query"
    figure(
        f"query_{name}",
        tails[0] * 1e3,
        f"ms, p99; median {medians[0] * 1e3:.2f}, CPU {cpu[0] * 1e3:.2f}",
    )
    figure(
        f"query_{name}_bare",
        tails[1] * 1e3,
        f"ms, p99, of {of}; median {medians[1] * 1e3:.2f}, CPU {cpu[1] * 1e3:.2f}",
    )
    figure(f"query_{name}_times_p99", tails[0] / tails[1], f"of {of}", at_most=TIMES_MAX)
    figure(f"query_{name}_times_median", medians[0] / medians[1], f"of {of}")
    figure(f"query_{name}_times_cpu", cpu[0] / cpu[1], f"of {of}", at_most=TIMES_MAX)
    dear = [tail([one.cpu_s for one in some]) for some in (through, beside)]
    figure(f"query_{name}_times_p99_cpu", dear[0] / dear[1], f"of {of}", at_most=TIMES_MAX)


def tail(some: list[float]) -> float:
    return statistics.quantiles(some, n=100)[-1]


def crowd(make: Callable[[], Question], port: int, noted: Noted, seconds: float) -> None:
    client = Client(port)
    questions = [make() for _ in range(DOCUMENTS)]
    calls = [bare(client, noted, question) for question in questions]
    client.close()
    wires = [question.wire for question in questions]
    rates: dict[str, list[tuple[float, float]]] = {"through": [], "bare": []}
    for _ in range(ROUNDS):
        works = {
            "through": lambda: query_crowd.asked(port, DASHBOARDS, seconds, wires),
            "bare": lambda: query_crowd.in_threads(
                DASHBOARDS,
                seconds,
                lambda thread, turn: replayed(calls[(thread + turn * DASHBOARDS) % DOCUMENTS]),
            ),
        }
        for name, work in works.items():
            begun = time.perf_counter(), time.process_time()
            done = work()
            spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
            rates[name].append((done / spent[1], done / spent[0]))
            week.told(f"{name}: {done} dashboards, {spent[1]:.1f} s of CPU in {spent[0]:.1f} s")
    best = {name: max(some) for name, some in rates.items()}
    for name, (by_cpu, by_clock) in best.items():
        unit = f"requests/s and core, {DASHBOARDS} dashboards at once; {by_clock:.1f} by the clock"
        figure(f"query_crowd_{name}", by_cpu, unit)
    figure(
        "query_crowd_times_cpu",
        best["bare"][0] / best["through"][0],
        f"of the bare storage queries in as many threads, {len(calls[0])} a dashboard",
        at_most=TIMES_MAX,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--days", type=int, default=7)
    options.add_argument("--segments", type=int, default=200_000, help="of a day")
    options.add_argument("--place", type=Path)
    options.add_argument("--only")
    options.add_argument("--asked", type=int, default=600)
    options.add_argument("--seconds", type=float, default=10.0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = given.place or Path(scratch) / "week"
        built = query_data.opened(place, given.days, given.segments, plans())
        noted = Noted(built.storage)
        server = serving(noted)
        try:
            with settled():
                run(given, server.port, noted)
        finally:
            server.stop(5)
            built.stop()


def run(given: argparse.Namespace, port: int, noted: Noted) -> None:
    questions = Questions(given.days, given.segments).all()
    if given.only not in (None, CROWD, *questions):
        sys.exit(f"--only takes {CROWD}, {', '.join(questions)}")
    client = Client(port)
    for name, make in questions.items():
        if given.only in (None, name):
            measure(name, make, client, noted, given.asked)
    client.close()
    if given.only in (None, CROWD):
        crowd(questions["dashboard"], port, noted, given.seconds)


if __name__ == "__main__":
    main()

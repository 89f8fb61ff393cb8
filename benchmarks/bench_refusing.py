"""Figures of refusing malformed messages: its cost for them and for all other messages.

Calls of one malformed message, to the real receiver of an OAP that refuses them: refused calls a
second of one of its cores, the client being grpcio's. Beside them the same calls with a good
message, which are kept. Then bursts of good 1 KB segments to a receiver that looks at nothing and
to three that refuse: by the walk at the top level, by a walk of the nested messages in Python, and
by protobuf's library (`nested_walk`). Then these three checks by themselves, and the memory that
the library takes for a hostile message. All variants take turns, since a shared machine only ever
adds. CPU is the receiver process's own.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import psutil

from bench_receiver import BURST, COLLECT, ROUNDS, connected, cost_us, receiver, record
from figures import figure
from nested_walk import CHECKS, in_receiver
from skyfarer.base.units import KIB, MIB
from skyfarer.testing.traces import Exit, segment
from skyfarer.wire.rpc import Kind

Started = tuple[psutil.Process, int, Callable[[], int]]
CALLS = 3000
CHECKED, CHECK_ROUNDS = 20_000, 9
BURSTS, BURST_ROUNDS = 150, 6  # a process's CPU is counted in 10 ms
EMPTY_SPANS = 2 * MIB
REFUSED_PER_S_MIN = 5000


def calls(port: int, message: bytes, expected: grpc.StatusCode) -> int:
    """One message each, as many at once as a connection has places for."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        collect = channel.stream_unary(COLLECT)
        open_ = [collect.future(iter([message])) for _ in range(CALLS)]
        assert {call.code() for call in open_} == {expected}
    return CALLS


def best_us(process: psutil.Process, port: int, message: bytes, status: grpc.StatusCode) -> float:
    spent = [cost_us(process, lambda: calls(port, message, status)) for _ in range(ROUNDS + 1)]
    return min(spent[1:])


def check_us(check: Callable[[bytes], bool], message: bytes) -> float:
    assert check(message)
    begun_s = time.process_time()
    for _ in range(CHECKED):
        check(message)
    return (time.process_time() - begun_s) / CHECKED * 1e6


def checks() -> None:
    """The best round of each, of a segment with one span and of one with three."""
    for name, message in (("1_span", record(1 * KIB)), ("3_spans", three_spans())):
        figure(f"refusing_check_{name}_size", len(message), "bytes")
        rounds = [
            [check_us(check, message) for check in CHECKS.values()] for _ in range(CHECK_ROUNDS)
        ]
        for check, best in zip(CHECKS, map(min, zip(*rounds, strict=True)), strict=True):
            figure(f"refusing_check_{name}_{check}", best, "µs per message")


def three_spans() -> bytes:
    """1.5 KB, as an agent in a service with a database and an upstream sends it."""
    tags = {
        "url": "http://order:8080/orders/12345",
        "http.method": "GET",
        "http.status_code": "200",
    }
    statement = "select id, name, price from orders where id = ? " * 5
    query = {"db.statement": statement, "db.type": "mysql", "db.instance": "orders"}
    exits = [
        Exit("GET:/stock/{id}", "stock:8080", 3, 10, tags=tags),
        Exit("MySQL/JDBC/query", "db:3306", 15, 9, layer="Database", tags=query),
    ]
    names = ("order", "order-1@10.0.2.1", "GET:/orders/{id}")
    more = {**tags, "http.body": "x" * 740}
    return segment(*names, 1_700_000_000_000, 42, exits=exits, tags=more).SerializeToString()


def memory_of_empty_spans() -> None:
    """The library makes an object of two bytes; in a process of its own, which ends with it."""
    program = (
        "import resource; from skyfarer.wire.messages import SegmentObject as S;"
        "r = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; before = r();"
        f"S.FromString(bytes.fromhex('1a00') * {EMPTY_SPANS}); print(r() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    figure("refusing_check_parsed_memory", int(done.stdout) / KIB, "MiB for a message of 4 MiB")


def burst_costs() -> None:
    with ExitStack() as stack:
        sides = {"without": stack.enter_context(started())}
        for name in CHECKS:
            with in_receiver(name):
                sides[name] = stack.enter_context(started(refuse_malformed=True))
        for size, message in (("1_span", record(1 * KIB)), ("3_spans", three_spans())):
            costs = burst_costs_us(sides, [message] * BURST)
            figure(f"refusing_burst_{size}", 1e6 / costs["without"], "messages/s per core")
            for name in CHECKS:
                more_us = costs[name] - costs["without"]
                figure(f"refusing_burst_{size}_{name}", 1e6 / costs[name], "messages/s per core")
                figure(f"refusing_burst_{size}_{name}_cost", more_us, "µs per message")


def burst_costs_us(sides: dict[str, Started], messages: list[bytes]) -> dict[str, float]:
    """The receiver's CPU a message, the best round of each variant."""
    best = dict.fromkeys(sides, math.inf)
    for number in range(BURST_ROUNDS + 1):
        for name, (process, port, _) in sides.items():
            spent_us = cost_us(process, lambda: sent(port, messages))  # noqa: B023
            best[name] = min(best[name], spent_us) if number else math.inf
    return best


def sent(port: int, messages: list[bytes]) -> int:
    with connected(port) as send:
        for _ in range(BURSTS):
            send(Kind.SEGMENT, messages)
    return BURSTS * len(messages)


@contextmanager
def started(refuse_malformed: bool = False) -> Iterator[Started]:
    with (
        tempfile.TemporaryDirectory() as directory,
        receiver(Path(directory), refuse_malformed=refuse_malformed) as side,
    ):
        yield side


def calls_refused_and_kept() -> None:
    good = record(1 * KIB)
    with started(refuse_malformed=True) as (strict, port, taken):
        bad_us = best_us(strict, port, good[:-1], grpc.StatusCode.INVALID_ARGUMENT)
        assert taken() == 0, "something of a refused message is in the queue"
        good_us = best_us(strict, port, good, grpc.StatusCode.OK)
    figure("refusing_calls", 1e6 / bad_us, "refused/s per core", at_least=REFUSED_PER_S_MIN)
    figure("refusing_calls_kept", 1e6 / good_us, "kept/s per core")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", choices=("calls", "bursts", "checks"))
    only = options.parse_args().only
    if only in (None, "calls"):
        calls_refused_and_kept()
    if only in (None, "bursts"):
        burst_costs()
    if only in (None, "checks"):
        checks()
        memory_of_empty_spans()


if __name__ == "__main__":
    main()

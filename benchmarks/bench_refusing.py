"""What refusing malformed messages costs, and what it costs the others.

Calls of one message that is none, to the real receiver of an OAP that refuses them: refused calls a
second of one of its cores, the client being grpcio's. Beside them the same calls with a good
message, which are kept. Then bursts of good 1 KB segments to that receiver and to one that looks at
nothing, in turns, since a shared machine only ever adds; and the walk by itself. CPU is the
receiver process's own.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import grpc
import psutil

from bench_receiver import BURSTS, COLLECT, ROUNDS, bursts, cost_us, receiver, record
from figures import figure
from skyfarer.base.units import KIB
from skyfarer.wire.split import well_formed

CALLS = 3000
WALKS = 200_000
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


def walk_us(message: bytes) -> float:
    begun_s = time.process_time()
    for _ in range(WALKS):
        well_formed(message)
    return (time.process_time() - begun_s) / WALKS * 1e6


def main() -> None:
    good = record(1 * KIB)
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        receiver(Path(first), refuse_malformed=True) as (strict, strict_port, taken),
        receiver(Path(second)) as (lax, lax_port, _),
    ):
        bad_us = best_us(strict, strict_port, good[:-1], grpc.StatusCode.INVALID_ARGUMENT)
        assert taken() == 0, "something of a refused message is in the queue"
        good_us = best_us(strict, strict_port, good, grpc.StatusCode.OK)
        figure("refusing_calls", 1e6 / bad_us, "refused/s per core", at_least=REFUSED_PER_S_MIN)
        figure("refusing_calls_kept", 1e6 / good_us, "kept/s per core")
        sides = [
            [cost_us(process, lambda: bursts(port, BURSTS)) for process, port in pair]  # noqa: B023
            for pair in [((strict, strict_port), (lax, lax_port))] * (ROUNDS + 1)
        ]
        strict_us, lax_us = map(min, zip(*sides[1:], strict=True))
        figure("refusing_burst_with_walk", 1e6 / strict_us, "messages/s per core")
        figure("refusing_burst_without", 1e6 / lax_us, "messages/s per core")
        figure("refusing_burst_cost", strict_us - lax_us, "µs per message")
        figure("refusing_walk", walk_us(good), "µs per message of 1 KiB")


if __name__ == "__main__":
    main()

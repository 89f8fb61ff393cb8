"""The promise: what was acknowledged is stored and counted once, whatever is killed, and whoever
asked for the id of a name is told one, always the same.

A start takes long, so all deaths are died under both loads at once: an agent's segments, and two
hundred old agents that register. Three times the whole process group is killed; once Spark's JVM
alone, and then the OAP must not pretend: it ends by itself and says why.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import duckdb
import grpc
import psutil
import pytest

from e2e.registering import Fire
from satellite.faults.agents import RECONNECT
from skyfarer.oap.core import ids
from skyfarer.oap.oal.compiler import compile_texts, shipped
from skyfarer.testing.programs import Oap, eventually
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import SegmentObject

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

NOON = int(datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)
SEGMENTS = 10_000
A_CALL = 50
ALL_DONE_WITHIN_S = 1500.0
BACK_WITHIN_S = 600.0


def kill(oap: Oap) -> None:
    oap.kill()


def kill_jvm(oap: Oap) -> None:
    (jvm,) = [one for one in psutil.Process(oap.pid).children() if "java" in one.name()]
    jvm.kill()
    eventually(oap.has_ended, 240, "the OAP ends by itself")
    assert oap.stop() == 1
    assert "Spark's JVM is gone" in oap.log.read_text()


DEATHS: dict[int, tuple[int, Callable[[Oap], None]]] = {
    50: (50, kill),
    90: (2_000, kill_jvm),
    120: (4_000, kill),
    150: (6_000, kill),
}
"""In the middle of these calls, as soon as so many answers to those who register have come."""


def numbered(number: int) -> SegmentObject:
    return segment(
        f"service-{number % 3}",
        f"instance-{number % 7}",
        f"/endpoint/{number % 40}",
        NOON + number * 20,
        latency(number),
        error=failed(number),
        segment_id=str(number),
    )


def latency(number: int) -> int:
    return 10 + number % 90


def failed(number: int) -> bool:
    return number % 11 == 0


class PlainClient(threading.Thread):
    """Sends each call once, in order, as agents do, and remembers which were acknowledged."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._address = f"127.0.0.1:{port}"
        self.sent: set[int] = set()
        self.acknowledged: set[int] = set()
        self.half_way, self.killed = threading.Semaphore(0), threading.Semaphore(0)
        self.failures = 0

    def run(self) -> None:
        channel = grpc.insecure_channel(self._address, RECONNECT)
        for call in range(SEGMENTS // A_CALL):
            numbers = range(call * A_CALL, (call + 1) * A_CALL)
            collect = channel.stream_unary(
                "/skywalking.v3.TraceSegmentReportService/collect",
                request_serializer=SegmentObject.SerializeToString,
            )
            try:
                collect(self._segments(call, numbers), timeout=BACK_WITHIN_S)
            except grpc.RpcError:
                self.failures += 1
                channel.close()
                channel = grpc.insecure_channel(self._address, RECONNECT)
                grpc.channel_ready_future(channel).result(timeout=BACK_WITHIN_S)
            else:
                self.acknowledged |= set(numbers)
        channel.close()

    def _segments(self, call: int, numbers: range) -> Iterator[SegmentObject]:
        for number in numbers:
            if call in DEATHS and number == numbers[A_CALL // 2]:
                self.half_way.release()
                self.killed.acquire()
            self.sent.add(number)
            yield numbered(number)


def test_whatever_is_killed_nothing_acknowledged_is_lost_or_counted_twice(own_oap: Oap) -> None:
    oap = own_oap
    client, fire = PlainClient(oap.grpc_port), Fire(oap.grpc_port)
    client.start()
    asyncio.run(under_fire(oap, client, fire))
    client.join(BACK_WITHIN_S)
    assert not client.is_alive()
    assert client.failures >= len(DEATHS), "a death hit no call"
    assert len(client.acknowledged) == SEGMENTS - client.failures * A_CALL
    eventually(lambda: oap.ledger()["queued"] == 0, 600, "everything is applied")
    ledger = oap.ledger()
    assert ledger["balanced"]
    assert (ledger["delivered"], ledger["dropped"]) == (ledger["accepted"], {})
    assert oap.stop() == 0
    prove_stored_once(oap, client)
    fire.prove(oap)


async def under_fire(oap: Oap, client: PlainClient, fire: Fire) -> None:
    async with asyncio.timeout(ALL_DONE_WITHIN_S):
        burning = asyncio.create_task(fire.burn())
        for known, death in DEATHS.values():
            assert await asyncio.to_thread(client.half_way.acquire, timeout=BACK_WITHIN_S)
            while fire.told < known:  # noqa: ASYNC110 - clients count, nobody announces
                await asyncio.sleep(0.02)
            await asyncio.to_thread(death, oap)
            client.killed.release()
            await asyncio.to_thread(oap.start)
        await burning


def prove_stored_once(oap: Oap, client: PlainClient) -> None:
    with duckdb.connect(str(oap.data / "storage" / "skyfarer.duckdb"), read_only=True) as stored:
        rows = stored.execute("SELECT segment_id FROM segment_20261115").fetchall()
        numbers = [int(segment_id) for (segment_id,) in rows]
        assert len(numbers) == len(set(numbers)), "stored twice"
        assert client.acknowledged <= set(numbers), "acknowledged and lost"
        assert set(numbers) <= client.sent, "never sent"
        assert metrics(stored, "service") == expected(numbers, by_service)
        assert metrics(stored, "service_instance") == expected(numbers, by_instance)
        assert metrics(stored, "endpoint") == expected(numbers, by_endpoint)


METRICS = compile_texts(shipped()).metrics
Sums = dict[tuple[str, int], tuple[int, int, int]]


def metrics(stored: duckdb.DuckDBPyConnection, entity: str) -> Sums:
    """By entity and minute, from the columns that its average and its share of successes read."""
    parts = {metric.name: dict(metric.columns) for metric in METRICS}
    average, share = parts[f"{entity}_resp_time"], parts[f"{entity}_sla"]
    count, latency, match = average["count"], average["summation"], share["match"]
    rows = stored.execute(
        f"""SELECT entity_id, time_bucket, {count}, {latency}, {count} - coalesce({match}, 0)
        FROM metrics_{entity}_20261115 WHERE time_bucket > 100000000000"""
    ).fetchall()
    return {(entity, bucket): tuple(sums) for entity, bucket, *sums in rows}


def by_service(number: int) -> str:
    return ids.service_id(f"service-{number % 3}")


def by_instance(number: int) -> str:
    return ids.instance_id(by_service(number), f"instance-{number % 7}")


def by_endpoint(number: int) -> str:
    return ids.endpoint_id(by_service(number), f"/endpoint/{number % 40}")


def expected(numbers: list[int], entity: Callable[[int], str]) -> Sums:
    sums: Sums = {}
    for number in numbers:
        key = entity(number), 202611151200 + number * 20 // 60_000
        calls, latency_sum, errors = sums.get(key, (0, 0, 0))
        sums[key] = calls + 1, latency_sum + latency(number), errors + failed(number)
    return sums

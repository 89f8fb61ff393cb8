"""One payload in a hundred is noise: good ones are counted, bad ones parked, nothing stops."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random

import duckdb
import grpc
import pytest

from skyfarer.cli.samples import Samples
from skyfarer.testing.programs import Oap, ledger_since
from skyfarer.testing.traces import segment

pytestmark = pytest.mark.e2e

NOON = int(datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)
PAYLOADS = 5_000
ONE_IN = 100


def payloads(random: Random) -> Iterator[tuple[bool, bytes]]:
    for number in range(PAYLOADS):
        if number % ONE_IN == 0:
            yield False, random.randbytes(random.randrange(1, 2_000))
        else:
            good = segment("shop", "shop-1", "/pay", NOON, 10, segment_id=f"good-{number}")
            yield True, bytes(good.SerializeToString())


def segment_rows(oap: Oap) -> float:
    return Samples(oap.metrics()).total("pipeline_rows_total", what="segment")


def parked(oap: Oap, *arguments: str) -> tuple[int, bytes]:
    command = [sys.executable, "-m", "skyfarer.cli", "oap", "parked", *arguments]
    done = subprocess.run(
        [*command, "--data-dir", str(oap.data)], stdout=subprocess.PIPE, timeout=120, check=False
    )
    return done.returncode, done.stdout


def retried(oap: Oap, first: bytes, second: bytes) -> None:
    """Two of the bad ones go through all of it once more, and are as bad as before."""
    before = oap.ledger()
    _, listed = parked(oap, "list", "--json")
    sequences = [str(json.loads(line)["sequence"]) for line in listed.splitlines()]
    assert parked(oap, "show", sequences[0], "--raw") == (0, first)
    code, said = parked(oap, "retry", sequences[0], sequences[1])
    assert code == 1
    assert said.startswith(b"2 records sent again: 0 analysed, 2 parked again, 0 waiting")
    assert parked(oap, "retry", *sequences[:2]) == (1, b"0 records sent again\n")
    ledger = oap.ledger()
    assert ledger["balanced"]
    added = ledger_since(before, ledger)
    assert (added["accepted"], added["delivered"], sum(added["dropped"].values())) == (2, 0, 2)
    anew = json.loads(parked(oap, "list", "--json", "--limit", "1")[1])["sequence"]
    assert parked(oap, "show", str(anew), "--raw") == (0, second)


def test_random_bytes_are_parked_can_be_retried_and_every_good_segment_is_counted(
    oap_to_end: Oap,
) -> None:
    oap = oap_to_end
    sent = list(payloads(Random(20261115)))
    good = [payload for sound, payload in sent if sound]
    bad = [payload for sound, payload in sent if not sound]
    before, rows = oap.ledger(), segment_rows(oap)
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        for first in range(0, PAYLOADS, 250):
            collect(iter([payload for _, payload in sent[first : first + 250]]), timeout=120)
    ledger = oap.await_applied(before["accepted"] + PAYLOADS)
    assert ledger["balanced"]
    added = ledger_since(before, ledger)
    assert (added["accepted"], added["delivered"]) == (PAYLOADS, len(good))
    assert sum(added["dropped"].values()) == len(bad)
    assert set(added["dropped"]) <= {"undecodable", "incomplete"}
    assert oap.graphql(
        """query ($duration: Duration!) {
             execExpression(expression: "service_cpm", entity: {serviceName: "shop", normal: true},
                            duration: $duration) { type error results { values { value } } } }""",
        duration={"start": "2026-11-15 1200", "end": "2026-11-15 1200", "step": "MINUTE"},
    )["execExpression"] == {
        "type": "TIME_SERIES_VALUES",
        "error": None,
        "results": [{"values": [{"value": str(len(good))}]}],
    }
    assert segment_rows(oap) - rows == len(good)
    metrics = oap.metrics()
    assert "pipeline_lag_seconds 0" in metrics
    assert f'pipeline_records_total{{outcome="parked"}} {len(bad)}' in metrics
    retried(oap, bad[0], bad[1])
    assert "ended with code" not in oap.log.read_text(), "the receiver was restarted"
    assert "analysis failed" not in oap.log.read_text(), "the query was restarted"
    assert oap.stop() == 0
    with duckdb.connect(str(oap.data / "storage" / "skyfarer.duckdb"), read_only=True) as stored:
        found = stored.execute("SELECT payload, reason FROM parked_record ORDER BY sequence")
        stored_rows = found.fetchall()
    assert [payload for payload, _ in stored_rows] == bad + bad[:2]
    assert all(reason for _, reason in stored_rows)

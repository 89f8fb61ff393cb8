"""A batch of every kind: what is analysed, what is kept as it came, what is parked."""

from __future__ import annotations

from oap.pipeline.bench import BUCKET, NOON, SHOP, Bench, Calls
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.core.time_bucket import minute_bucket
from skyfarer.telemetry import table
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import InstancePingPkg
from skyfarer.wire.rpc import Kind

ALWAYS = (197001010000, 203001010000)
ANALYSED = {
    *(Kind.SEGMENT, Kind.INSTANCE_PROPERTIES, Kind.INSTANCE_PING, Kind.INVENTORY),
    *(Kind.OTLP_TRACES, Kind.V2_SEGMENT, Kind.JVM_METRICS, Kind.CLR_METRICS),
    *(Kind.V2_JVM_METRICS, Kind.V2_CLR_METRICS),
    *(Kind.BROWSER_PAGE, Kind.BROWSER_WEB_VITALS, Kind.BROWSER_RESOURCE),
    *(Kind.BROWSER_INTERACTION, Kind.BROWSER_ERROR, Kind.METER, Kind.METER_COLLECTION),
    *(Kind.MESH_METRICS, Kind.LOG, Kind.OTLP_LOGS, Kind.EVENT),
}
KEPT = sorted(set(Kind) - {Kind.NONE} - ANALYSED)


def test_every_kind_that_nothing_analyses_is_kept_whole_and_delivered(bench: Bench) -> None:
    """Neighbours of every sort, so that payloads could be mixed up."""
    before = minute_bucket(bench.clock.now_ms(), bench.zone)
    for kind in KEPT:
        bench.writer.append(kind, [bytes([kind]) * kind, b"\xff not a message"])
        bench.append(segment("shop", "shop-1", "/pay", NOON, 10))
    bench.apply()
    after = minute_bucket(bench.clock.now_ms(), bench.zone)
    for number, kind in enumerate(KEPT):
        first, second = bench.storage.records(kind, *ALWAYS, limit=9)
        assert (first.payload, second.payload) == (bytes([kind]) * kind, b"\xff not a message")
        assert (first.sequence, second.sequence) == (3 * number, 3 * number + 1)
        assert before <= first.time_bucket <= after
    assert bench.calls() == {BUCKET: Calls(len(KEPT), 10 * len(KEPT), 0)}
    assert bench.progress() == Applied(3 * len(KEPT), 3 * len(KEPT), {})
    assert bench.parked() == []
    assert bench.registry.value(table.PIPELINE_KEPT, kind="pprof") == 2
    assert bench.registry.value(table.PIPELINE_RECORDS, outcome="stored") == 3 * len(KEPT)


def test_a_mixed_batch_balances_to_the_record(bench: Bench) -> None:
    ping = InstancePingPkg(service="shop", serviceInstance="shop-1")
    bench.append(segment("shop", "shop-1", "/pay", NOON, 10, segment_id="a"))
    bench.writer.append(Kind.PPROF, [b"one", b"two"])
    bench.keep(Kind.INSTANCE_PING, ping)
    bench.writer.append(777, [b"nobody knows"])
    bench.writer.append(2**32 - 1, [b"nor ever will"])
    bench.writer.append(Kind.SEGMENT, [b"\xff"])
    bench.append(segment("shop", "shop-1", "/pay", NOON, 10, segment_id="a"))
    bench.apply()
    dropped = {"unknown_kind": 2, "undecodable": 1, "duplicate": 1}
    assert bench.progress() == Applied(8, 4, dropped)
    assert bench.parked() == [
        (4, "unknown_kind", b"nobody knows"),
        (5, "unknown_kind", b"nor ever will"),
        (6, "undecodable", b"\xff"),
    ]
    assert [one.payload for one in bench.storage.records(Kind.PPROF, *ALWAYS, limit=9)] == [
        *(b"one", b"two")
    ]
    assert bench.calls() == {BUCKET: Calls(1, 10, 0)}
    assert [one.id for one in bench.storage.services(None)] == [SHOP]


def test_a_batch_of_records_alone_is_kept_once_however_often_it_comes(bench: Bench) -> None:
    bench.writer.append(Kind.PPROF, [b"one", b"two"])
    for _ in range(2):
        bench.apply(start=0)
    assert len(bench.storage.records(Kind.PPROF, *ALWAYS, limit=9)) == 2
    assert bench.progress() == Applied(2, 2, {})
    assert bench.times_applied == 1

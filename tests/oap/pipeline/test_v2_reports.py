"""JVMs and CLRs of SkyWalking 6 and 7: an id in the place of names, and the same metrics."""

from __future__ import annotations

from google.protobuf.message import Message

from oap.pipeline.bench import BUCKET, NOON, PLAN, SETTINGS, SHOP, Bench, Calls
from oap.pipeline.test_v2 import span, upstream
from skyfarer.oap.core import ids
from skyfarer.oap.core.inventory import InventoryScope
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.pipeline.analysis.segments import one_form
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.sources.bombs import ELEMENTS_MAX
from skyfarer.oap.pipeline.sources.reports import sources_of
from skyfarer.oap.pipeline.times import DAY_MS
from skyfarer.wire.messages import runtime, v2_runtime
from skyfarer.wire.rpc import Kind

SERVICE, INSTANCE = InventoryScope.SERVICE, InventoryScope.SERVICE_INSTANCE
ENDPOINT = InventoryScope.ENDPOINT
ALWAYS = (197001010000, 203001010000)
TOLD = sources_of((Kind.JVM_METRICS, Kind.CLR_METRICS)) - {
    *("ServiceInstanceJVMThread", "ServiceInstanceJVMClass")
}
"""All that v2 has messages for."""
WHOLE_JVM = v2_runtime.JVMMetric(
    time=NOON,
    cpu=v2_runtime.CPU(usagePercent=40.0),
    memory=[v2_runtime.Memory(isHeap=True, init=1, max=2, used=3, committed=4)],
    memoryPool=[v2_runtime.MemoryPool(type="METASPACE_USAGE", init=5, max=6, used=7, commited=8)],
    gc=[
        v2_runtime.GC(phrase="NEW", count=2, time=9),
        v2_runtime.GC(phrase="OLD", count=1, time=8),
    ],
)
WHOLE_CLR = v2_runtime.CLRMetric(
    time=NOON,
    cpu=v2_runtime.CPU(usagePercent=0.5),
    gc=v2_runtime.ClrGC(Gen0CollectCount=1, Gen1CollectCount=2, Gen2CollectCount=3, HeapMemory=4),
    thread=v2_runtime.ClrThread(
        AvailableCompletionPortThreads=5,
        AvailableWorkerThreads=6,
        MaxCompletionPortThreads=7,
        MaxWorkerThreads=8,
    ),
)


def jvm(time: int = NOON, instance: int = 3) -> v2_runtime.JVMMetricCollection:
    told = v2_runtime.JVMMetricCollection(serviceInstanceId=instance)
    told.metrics.add(time=time).cpu.usagePercent = 40.0
    return told


def percents(bench: Bench, instance: str = "shop-pid:1") -> dict[int, tuple[int, float]]:
    """By minute: how often the CPU of that instance was reported, and the sum of it."""
    (plan,) = (one for one in PLAN.sources if one.source == "ServiceInstanceJVMCPU")
    count, total = (dict(plan.metrics[0].columns)[part] for part in ("count", "summation"))
    entity = ids.instance_id(SHOP, instance)
    found = bench.storage.series(plan.source, entity, [count, total], BUCKET, BUCKET + 9)
    return {at: (row[count], row[total]) for at, row in found.items()}


def test_metrics_of_a_v2_message_are_those_of_the_same_v3_message(registered: Bench) -> None:
    who = {"service": "shop", "serviceInstance": "shop-pid:1"}
    new_jvm, new_clr = runtime.JVMMetricCollection(**who), runtime.CLRMetricCollection(**who)
    new_jvm.metrics.add().MergeFromString(WHOLE_JVM.SerializeToString())
    new_clr.metrics.add().MergeFromString(WHOLE_CLR.SerializeToString())
    told: list[Message] = [
        *(v2_runtime.JVMMetricCollection(serviceInstanceId=3, metrics=[WHOLE_JVM]), new_jvm),
        *(v2_runtime.CLRMetricCollection(serviceInstanceId=3, metrics=[WHOLE_CLR]), new_clr),
    ]
    kinds = (Kind.V2_JVM_METRICS, Kind.JVM_METRICS, Kind.V2_CLR_METRICS, Kind.CLR_METRICS)
    for kind, message in zip(kinds, told, strict=True):
        registered.keep(kind, message)
    metrics = Metrics(plan_of(shipped()).of(TOLD), SETTINGS)
    rows = registered.batch(0, 4).persist()
    named = one_form(rows, kinds, registered.inventories)
    old, new = (
        {
            source: one.rows.to_pylist(maps_as_pydicts="strict")
            for source, one in metrics.of_reports(of_one, kinds[::2]).items()
        }
        for of_one in (named.where("sequence % 2 = 0"), named.where("sequence % 2 = 1"))
    )
    rows.unpersist()
    assert old == new
    assert {source for source, some in old.items() if some} == TOLD


def test_reports_of_a_v2_instance_are_stored_under_its_name_and_once(registered: Bench) -> None:
    registered.keep(Kind.V2_JVM_METRICS, jvm(), jvm(NOON + 60_000), jvm(NOON + 60_000))
    registered.apply()
    registered.apply(start=0)
    assert percents(registered) == {BUCKET: (1, 40.0), BUCKET + 1: (2, 80.0)}
    assert registered.storage.records(Kind.V2_JVM_METRICS, *ALWAYS, limit=9) == []
    assert registered.progress() == Applied(3, 3, {})


def test_reports_of_an_unknown_instance_are_parked_and_count_when_retried_under_its_name(
    registered: Bench,
) -> None:
    """Instance 6 exists and its service does not."""
    registered.inventories.add(INSTANCE, 6, "till-6", 1000)
    strangers = [jvm(instance=number) for number in (6, 99, -1)]
    other = v2_runtime.CLRMetricCollection(serviceInstanceId=99, metrics=[WHOLE_CLR])
    registered.keep(Kind.V2_JVM_METRICS, jvm(), *strangers, jvm())
    registered.keep(Kind.V2_CLR_METRICS, other)
    registered.apply()
    parked = registered.parked()
    assert parked == [
        *((1 + n, "unknown_instance", one.SerializeToString()) for n, one in enumerate(strangers)),
        (5, "unknown_instance", other.SerializeToString()),
    ]
    assert registered.progress() == Applied(6, 2, {"unknown_instance": 4})
    assert percents(registered) == {BUCKET: (2, 80.0)}
    registered.inventories.add(INSTANCE, 6, "till-6", 2)
    registered.writer.append(Kind.V2_JVM_METRICS, [parked[0][2]])
    registered.apply()
    assert percents(registered, "till-6") == {BUCKET: (1, 40.0)}


def test_segments_and_reports_of_v2_and_v3_share_a_batch_and_one_look_for_names(
    registered: Bench,
) -> None:
    newer = runtime.JVMMetricCollection(service="shop", serviceInstance="shop-pid:1")
    newer.metrics.add(time=NOON).cpu.usagePercent = 60.0
    registered.keep(Kind.V2_JVM_METRICS, jvm(), jvm(instance=5))
    registered.keep(Kind.V2_SEGMENT, upstream(1, span(operationNameId=7)))
    registered.keep(Kind.JVM_METRICS, newer)
    registered.keep(Kind.V2_SEGMENT, upstream(2, span(), instance=99))
    registered.keep(Kind.V2_JVM_METRICS, jvm(instance=98))
    registered.apply()
    assert registered.calls() == {BUCKET: Calls(1, 10, 0)}
    assert percents(registered) == {BUCKET: (2, 100.0)}
    assert sorted(registered.inventories.asked) == [
        *((SERVICE, [2, 4]), (INSTANCE, [3, 5, 98, 99]), (ENDPOINT, [7])),
    ]
    assert [sequence for sequence, _, _ in registered.parked()] == [4, 5]
    assert registered.progress() == Applied(6, 4, {"unknown_instance": 2})


def test_what_cannot_be_of_v2_is_parked_and_what_is_too_old_given_up(registered: Bench) -> None:
    bomb = jvm()
    for _ in range(ELEMENTS_MAX):
        bomb.metrics[0].gc.add(count=1)
    registered.writer.append(Kind.V2_JVM_METRICS, [b"\xff", b""])
    registered.writer.append(Kind.V2_CLR_METRICS, [b"\xff", b""])
    late, early = jvm(NOON - 40 * DAY_MS), jvm(NOON + DAY_MS)
    registered.keep(Kind.V2_JVM_METRICS, jvm(instance=0), jvm(-1), early, late, bomb, jvm())
    registered.apply()
    assert [(sequence, code) for sequence, code, _ in registered.parked()] == [
        *((0, "undecodable"), (1, "incomplete"), (2, "undecodable"), (3, "incomplete")),
        *((4, "incomplete"), (5, "implausible"), (6, "future"), (8, "oversize")),
    ]
    assert percents(registered) == {BUCKET: (1, 40.0)}
    assert registered.progress().delivered == 1
    assert registered.progress().dropped["expired"] == 1


def test_reports_that_bring_their_names_ask_storage_for_none(registered: Bench) -> None:
    newer = runtime.JVMMetricCollection(service="shop", serviceInstance="shop-pid:1")
    newer.metrics.add(time=NOON).cpu.usagePercent = 60.0
    registered.keep(Kind.JVM_METRICS, newer)
    registered.apply()
    assert percents(registered) == {BUCKET: (1, 60.0)}
    assert registered.inventories.asked == []

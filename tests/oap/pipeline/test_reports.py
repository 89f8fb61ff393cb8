"""What agents say of themselves: JVMs, CLRs and browsers, from their bytes to stored metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from oap.pipeline.bench import BUCKET, NOON, SETTINGS, SHOP, Bench, Calls
from oap.pipeline.bench import PLAN as FEW
from oap.pipeline.reported import REGISTERED, Row, meaning, messages
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import MESHED, REPORTED, Entity
from skyfarer.oap.core.entities import DetectPoint as Seen
from skyfarer.oap.core.inventory import InventoryScope
from skyfarer.oap.core.storage import Applied, Deltas
from skyfarer.oap.oal.compiler import Text, plan_of, shipped
from skyfarer.oap.oal.interpreter import accumulate, merge
from skyfarer.oap.oal.values import NO_BEGINNING, value_of
from skyfarer.oap.pipeline.analysis.segments import one_form
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings, NamingSettings
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.sources.bombs import ELEMENTS_MAX
from skyfarer.oap.pipeline.sources.reports import REPORTS, reports_of
from skyfarer.oap.pipeline.sources.rows import decoders
from skyfarer.oap.pipeline.times import DAY_MS
from skyfarer.satellite.meters import collection
from skyfarer.satellite.sections import TelemetryConfig
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import DetectPoint, browser, mesh, meter, runtime
from skyfarer.wire.rpc import Kind

OWN = """
named = from(ServiceInstanceJVMCPU.usePercent).filter(name == "a").doubleAvg();
of_service = from(BrowserAppPagePerf.fmpTime).filter(serviceName == "web").max();
by_id = from(ServiceInstanceCLRGC.heapMemory).filter(serviceId != null).min();
"""
PLAN = plan_of([*shipped(), Text("own.oal", OWN)]).of({*REPORTED, *MESHED})
LONG_NAMES = AnalysisSettings(NamingSettings(40, 40, 40))
ALWAYS = 190001010000, 299912312359


def jvm(time: int = NOON, service: str = "shop") -> runtime.JVMMetricCollection:
    told = runtime.JVMMetricCollection(service=service, serviceInstance="shop-1")
    told.metrics.add(time=time).cpu.usagePercent = 40.0
    return told


def error(**fields: object) -> browser.BrowserErrorLog:
    told = {"service": "web", "serviceVersion": "v1", "pagePath": "/cart", "time": NOON}
    return browser.BrowserErrorLog(**told | fields)


def interpreted(given: list[tuple[int, Message]]) -> dict[tuple[object, ...], dict[str, object]]:
    """(source, minute, service, instance, endpoint) → columns."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for kind, message in given:
        for row in meaning(kind, message):
            groups[row.key].append(row)
            if row.tls is not None:
                groups[row.tls]
    plans = {one.source: one for one in PLAN.sources}
    return {
        key: dict(accumulate(plans[str(key[0])], [*map(_read, rows)]))
        for key, rows in groups.items()
    }


def _read(row: Row) -> dict[str, object]:
    told = {
        "name": row.instance or row.endpoint or row.service,
        "serviceName": row.service,
        "serviceId": ids.service_id(row.service),
        "sourceServiceName": row.from_service,
        "destServiceName": row.service,
    }
    return told | row.attributes


def found_in(deltas: dict[str, Deltas]) -> dict[tuple[object, ...], dict[str, object]]:
    names = (
        *("minute", "service", "instance", "endpoint"),
        *("from_service", "from_instance", "component", "detect_point"),
    )
    plans = {one.source: one for one in PLAN.sources}
    found: dict[tuple[object, ...], dict[str, object]] = {}
    for source, one in deltas.items():
        for row in one.rows.to_pylist(maps_as_pydicts="strict"):
            key = (source, *(row[name] for name in names))
            told = {column: row[column] for column in one.merges if row[column] is not None}
            found[key] = dict(merge(plans[source], found.get(key, {}), told))
    return found


def test_random_reports_through_spark_are_what_the_interpreter_makes_of_them(bench: Bench) -> None:
    given = messages(20_26, NOON, 1_000)
    for kind, message in given:
        bench.keep(kind, message)
    for number, (service, instance) in REGISTERED.items():
        bench.inventories.add(InventoryScope.SERVICE, number, service)
        bench.inventories.add(InventoryScope.SERVICE_INSTANCE, number, instance, number)
    metrics = Metrics(PLAN, LONG_NAMES)
    rows = bench.batch(0, len(given)).persist()
    named = one_form(rows, REPORTS, bench.inventories)
    found = found_in(metrics.of_reports(named, REPORTS))
    rows.unpersist()
    expected = interpreted(given)
    assert {key[0] for key in expected} == {*REPORTED, *MESHED}
    assert found == expected


def test_both_decoders_lead_to_the_same_reports() -> None:
    given = messages(7, NOON, 200)
    for kind in REPORTS:
        payloads = [one.SerializeToString() for of, one in given if of == kind]
        found = [
            reports_of(kind, decoders(name)[kind].decode_all(pa.array(payloads, pa.binary())))
            for name in ("ptars", "protobuf")
        ]
        assert repr(found[0].to_pylist()) == repr(found[1].to_pylist())
        assert len(found[0]) == len(payloads) > 0


def test_reports_are_stored_with_the_batch_and_once(bench: Bench) -> None:
    bench.keep(Kind.JVM_METRICS, jvm(), jvm(NOON + 60_000))
    bench.apply()
    bench.apply(start=0)
    instance = ids.instance_id(ids.service_id("shop"), "shop-1")
    (plan,) = (one for one in FEW.sources if one.source == "ServiceInstanceJVMCPU")
    count, total = (dict(plan.metrics[0].columns)[part] for part in ("count", "summation"))
    found = bench.storage.series(plan.source, instance, [count, total], BUCKET, BUCKET + 9)
    assert found == {at: {count: 1, total: 40.0} for at in (BUCKET, BUCKET + 1)}
    assert bench.progress() == Applied(2, 2, {})


def test_pages_are_services_instances_and_endpoints_of_browsers(bench: Bench) -> None:
    bench.keep(
        Kind.BROWSER_PAGE,
        browser.BrowserPerfData(service="web", serviceVersion="v1", pagePath="/", time=NOON),
    )
    bench.keep(Kind.BROWSER_ERROR, error())
    bench.apply()
    (web,) = bench.storage.services("BROWSER")
    assert (web.name, web.normal) == ("web", True)
    assert [one.name for one in bench.storage.instances(web.id, *ALWAYS)] == ["v1"]
    pages = {one.name for one in bench.storage.endpoints(web.id, "", 9)}
    assert pages == {"/", "/cart"}


def test_a_log_of_an_error_is_counted_and_kept(bench: Bench) -> None:
    one = error(message="x is undefined", category=4)
    bench.keep(Kind.BROWSER_ERROR, one)
    bench.apply()
    (kept,) = bench.storage.records(Kind.BROWSER_ERROR, *ALWAYS, limit=9)
    assert kept.payload == one.SerializeToString()
    assert bench.progress() == Applied(1, 1, {})


def test_a_meter_is_counted_and_kept_and_one_of_nobody_is_kept(bench: Bench) -> None:
    told = meter.MeterData(service="snake", serviceInstance="s-1", timestamp=NOON)
    told.singleValue.name, told.singleValue.value = "instance_pvm_gc_g0", 6.6
    nobody = meter.MeterData(timestamp=NOON)
    nobody.singleValue.name = "instance_pvm_gc_g0"
    bench.keep(Kind.METER, told, nobody)
    bench.keep(Kind.METER_COLLECTION, meter.MeterDataCollection(meterData=[nobody, told]))
    bench.apply()
    instance = ids.instance_id(ids.service_id("snake"), "s-1")
    (plan,) = (one for one in FEW.sources if one.source == "InstanceMeter")
    (metric,) = plan.metrics
    count, total = (dict(metric.columns)[part] for part in ("count", "summation"))
    found = bench.storage.series(plan.source, instance, [count, total], BUCKET, BUCKET)
    assert found == {BUCKET: {count: 2, total: 14}}
    kept = bench.storage.records(Kind.METER, *ALWAYS, limit=9)
    assert [one.payload for one in kept] == [one.SerializeToString() for one in (told, nobody)]
    assert bench.progress() == Applied(3, 3, {})


def test_buckets_of_a_histogram_are_added_up_in_storage_and_the_record_is_kept(
    bench: Bench,
) -> None:
    told = meter.MeterData(service="snake", serviceInstance="s-1", timestamp=NOON)
    told.histogram.values.add(isNegativeInfinity=True, count=1)
    told.histogram.values.add(bucket=10.9, count=7)
    for name in ("took", "unasked"):
        told.histogram.name = name
        bench.keep(Kind.METER, told)
    bench.apply()
    bench.keep(Kind.METER_COLLECTION, meter.MeterDataCollection(meterData=[told] * 2))
    told.histogram.name = "took"
    bench.keep(Kind.METER_COLLECTION, meter.MeterDataCollection(meterData=[told] * 2))
    bench.apply()
    instance = ids.instance_id(ids.service_id("snake"), "s-1")
    (plan,) = (one for one in FEW.sources if one.source == "InstanceHistogram")
    ((_, column),) = plan.metrics[0].columns
    found = bench.storage.series(plan.source, instance, [column], BUCKET, BUCKET)
    assert found == {BUCKET: {column: {str(NO_BEGINNING): 3, "10": 21}}}
    assert len(bench.storage.records(Kind.METER, *ALWAYS, limit=9)) == 2
    assert bench.progress() == Applied(4, 4, {})


def test_who_a_collection_is_of_stands_in_its_first_meter_and_holds_for_the_others() -> None:
    first = meter.MeterData(service="snake", serviceInstance="s-1", timestamp=NOON)
    other, nobody = meter.MeterData(), meter.MeterData()
    for number, one in enumerate((first, other, nobody)):
        one.singleValue.name = f"sw_stl_{number}"
    later = meter.MeterData(service="snail", timestamp=NOON + 1)
    later.histogram.values.add(count=1)
    given = [[first, other, later, other], [nobody], [other]]
    payloads = [meter.MeterDataCollection(meterData=one).SerializeToString() for one in given]
    batch = decoders("ptars")[Kind.METER_COLLECTION].decode_all(pa.array(payloads, pa.binary()))
    told, *others = reports_of(Kind.METER_COLLECTION, batch).to_pylist()
    assert [
        (one["source"], one["service"], one["instance"], one["time"] - NOON) for one in told
    ] == [
        *[("InstanceMeter", "snake", "s-1", 0)] * 2,
        ("InstanceMeter", "snail", "s-1", 1),
        ("InstanceHistogram", "snail", "s-1", 1),
        *[("ServiceMeter", "satellite::snake", "", 0)] * 2,
        ("ServiceMeter", "satellite::snail", "", 1),
    ]
    series = [one["text_1"] for one in told if one["source"] == "ServiceMeter"]
    assert (series, others) == (["s-1"] * 3, [[], []])


@pytest.fixture
def roomy(tmp_path: Path, spark: SparkSession) -> Iterator[Bench]:
    bench = Bench(tmp_path, spark, LONG_NAMES)
    bench.start(tmp_path / "skyfarer.duckdb")
    yield bench
    bench.stop()


def test_what_a_satellite_reports_is_of_a_service_in_the_layer_of_satellites(roomy: Bench) -> None:
    registries = {name: Registry() for name in ("pod-1", "pod-2")}
    for minute, counts in enumerate([(3, 900), (4, 0)]):
        for (instance, registry), count in zip(registries.items(), counts, strict=True):
            registry.inc(table.GATHERER_RECEIVE_COUNT, count, pipe="native", status="all")
            telemetry = TelemetryConfig(service="sidecars", instance=instance)
            payload = collection(registry.snapshot(), telemetry, NOON + minute * 60_000)
            roomy.writer.append(Kind.METER_COLLECTION, [payload])
        roomy.apply()
    (service,) = roomy.storage.services("SO11Y_SATELLITE")
    assert (service.name, service.normal) == ("satellite::sidecars", True)
    (plan,) = (one for one in FEW.sources if one.source == "ServiceMeter")
    (metric,) = plan.metrics
    columns = [column for _, column in metric.columns]
    found = roomy.storage.series(plan.source, service.id, columns, BUCKET, BUCKET + 1)
    assert value_of(metric, found[BUCKET + 1], 1, found[BUCKET]) == {"\x1fpipe=native": 4}


def test_a_label_that_is_no_text_leaves_its_meter_counted(bench: Bench) -> None:
    told = meter.MeterData(service="snake", serviceInstance="s-1", timestamp=NOON)
    told.singleValue.name, told.singleValue.value = "instance_pvm_gc_g0", 6
    told.singleValue.labels.add(name="half", value="?")
    bench.writer.append(Kind.METER, [told.SerializeToString().replace(b"?", b"\xc3")])
    bench.apply()
    assert bench.progress() == Applied(1, 1, {})


def test_a_relation_is_also_known_by_how_its_calls_were_secured(bench: Bench) -> None:
    told = mesh.ServiceMeshMetrics()
    for number, mode in enumerate(["mTLS", "", "TLS", "NONE", "mTLS"]):
        one = told.httpMetrics.metrics.add(startTime=NOON, tlsMode=mode)
        one.sourceServiceName, one.destServiceName = f"web-{number % 3}", "shop"
        one.detectPoint, one.latency = DetectPoint.client, 30
    over_tcp = mesh.ServiceMeshMetrics()
    one = over_tcp.tcpMetrics.metrics.add(startTime=NOON, tlsMode="TLS")
    one.sourceServiceName, one.destServiceName = "web-3", "shop"
    bench.keep(Kind.MESH_METRICS, told, over_tcp)
    bench.apply()
    found = bench.storage.relations(
        Entity.SERVICE_RELATION, Seen.CLIENT, BUCKET, BUCKET, [ids.service_id("shop")]
    )
    assert {one.source_id: one.components for one in found} == {
        ids.service_id("web-0"): (49, 142),
        ids.service_id("web-1"): (49, 142),
        ids.service_id("web-2"): (49, 130),
        ids.service_id("web-3"): (110, 130),
    }


def test_a_mesh_says_what_the_instances_are_that_it_saw_called(bench: Bench) -> None:
    told, over_tcp = mesh.ServiceMeshMetrics(), mesh.ServiceMeshMetrics()
    for metrics, instance, point in (
        (told.httpMetrics.metrics, "shop-1", DetectPoint.server),
        (told.httpMetrics.metrics, "shop-1", DetectPoint.server),
        (told.httpMetrics.metrics, "shop-2", DetectPoint.client),
        (told.httpMetrics.metrics, "", DetectPoint.server),
        (over_tcp.tcpMetrics.metrics, "shop-3", DetectPoint.server),
    ):
        one = metrics.add(startTime=NOON, destServiceName="shop", destServiceInstance=instance)
        one.sourceServiceName, one.sourceServiceInstance = "web", "web-1"
        one.detectPoint = point
        one.destInstanceProperties.add(key="pod", value="old")
        one.destInstanceProperties.add(key="pod", value=f"{instance}-xyz")
    bench.keep(Kind.MESH_METRICS, told, over_tcp)
    bench.apply()
    found = bench.storage.instances(SHOP, *ALWAYS)
    assert {one.name: one.attributes for one in found} == {
        "shop-1": (("pod", "shop-1-xyz"),),
        "shop-3": (("pod", "shop-3-xyz"),),
    }
    assert [one.name for one in bench.storage.services("MESH")] == ["shop"]


def test_a_mesh_adds_to_what_traces_say_and_draws_the_same_map(bench: Bench) -> None:
    bench.append(segment("shop", "shop-1", "/pay", NOON, 10))
    seen = mesh.HTTPServiceMeshMetric(
        startTime=NOON,
        sourceServiceName="web",
        sourceServiceInstance="web-1",
        destServiceName="shop",
        destServiceInstance="shop-1",
        endpoint="/pay",
        latency=30,
        status=True,
        detectPoint=DetectPoint.server,
    )
    told = mesh.ServiceMeshMetrics(httpMetrics=mesh.HTTPServiceMeshMetrics(metrics=[seen]))
    bench.keep(Kind.MESH_METRICS, told)
    bench.apply()
    assert bench.calls() == {BUCKET: Calls(2, 40, 0)}
    assert [one.name for one in bench.storage.services("MESH")] == ["shop"]
    found = bench.storage.relations(
        Entity.SERVICE_RELATION, Seen.SERVER, BUCKET, BUCKET, [ids.service_id("shop")]
    )
    callers = {one.source_id: one.components for one in found}
    assert callers == {ids.service_id("User", False): (1,), ids.service_id("web"): (49,)}
    assert bench.progress() == Applied(2, 2, {})


def test_what_cannot_be_is_parked_and_what_is_too_old_given_up(bench: Bench) -> None:
    bomb = jvm()
    for _ in range(ELEMENTS_MAX):
        bomb.metrics[0].gc.add(count=1)
    bench.keep(
        Kind.JVM_METRICS,
        jvm(service=""),
        jvm(-1),
        jvm(NOON + DAY_MS),
        jvm(NOON - 40 * DAY_MS),
        bomb,
        jvm(),
    )
    bench.keep(Kind.BROWSER_PAGE, browser.BrowserPerfData(service="web", time=2**60))
    bench.apply()
    parked = {sequence: code for sequence, code, _ in bench.parked()}
    assert parked == {
        0: "incomplete",
        1: "implausible",
        2: "future",
        4: "oversize",
        6: "implausible",
    }
    dropped = {"incomplete": 1, "implausible": 2, "future": 1, "oversize": 1, "expired": 1}
    assert bench.progress() == Applied(7, 1, dropped)


def test_names_are_cut_as_those_of_traces_are(bench: Bench) -> None:
    long = "x" * 300
    told = browser.BrowserPerfData(service=long, serviceVersion=long, pagePath=long, time=NOON)
    bench.keep(Kind.BROWSER_PAGE, told)
    bench.apply()
    (web,) = bench.storage.services("BROWSER")
    (version,) = bench.storage.instances(web.id, *ALWAYS)
    (page,) = bench.storage.endpoints(web.id, "", 9)
    naming = SETTINGS.naming
    assert [len(one.name) for one in (web, version, page)] == [
        naming.service_chars_max,
        naming.instance_chars_max,
        naming.endpoint_chars_max,
    ]

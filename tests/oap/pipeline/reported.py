"""Messages of agents about themselves, and what they mean: plainly, one value after the other."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from google.protobuf.message import Message

from skyfarer.wire.messages import CPU, DetectPoint, browser, mesh, meter, runtime, v2_runtime
from skyfarer.wire.rpc import Kind

PERCENTS = (0.0, 0.375, 1.0, 37.25, 100.0, float("nan"), float("inf"))
"""Sums of these are exact, in whatever order they are added."""
CLS = (0.0, 0.1234, 0.1235, 2.5, -0.0004, -1.0, float("nan"), 1e300)
REGISTERED = {3: ("shop", "a"), 5: ("desk", "b")}
"""By id: service and instance, the same as of newer agents."""
NEWER: dict[int, tuple[int, Any]] = {
    Kind.V2_JVM_METRICS: (Kind.JVM_METRICS, runtime.JVMMetricCollection),
    Kind.V2_CLR_METRICS: (Kind.CLR_METRICS, runtime.CLRMetricCollection),
}


class Row(NamedTuple):
    source: str
    time: int
    service: str
    instance: str
    endpoint: str
    attributes: dict[str, Any]
    from_service: str = ""
    from_instance: str = ""
    component: int = 0
    detect_point: str = ""

    @property
    def tls(self) -> tuple[object, ...] | None:
        """Of a relation of services that was secured: the key of that beside its own."""
        number = {"mTLS": 142, "TLS": 130}.get(self.attributes.get("tlsMode", ""))
        related = self.source.endswith("ServiceRelation")
        return self._replace(component=number).key if related and number else None

    @property
    def key(self) -> tuple[object, ...]:
        """What is added up together."""
        ends = self.from_service, self.from_instance, self.component, self.detect_point
        return self.source, self.time // 60_000, *self[2:5], *ends


def messages(seed: int, now_ms: int, count: int) -> list[tuple[int, Message]]:
    """Of every kind, a few names, several minutes; parts are missing, enumerations too new."""
    random = Random(seed)
    browsers = (_page, _vitals, _resource, _interaction, _error)
    makers = (_jvm, _clr, _v2_jvm, _v2_clr, *browsers, _meter, _meters, _mesh)
    return [makers[n % len(makers)](random, now_ms) for n in range(count)]


def newer(kind: int, message: Any) -> tuple[int, Message]:
    """What an agent of v3 would have sent in the place of one of v2."""
    own, form = NEWER[kind]
    service, instance = REGISTERED[message.serviceInstanceId]
    return own, _with_metrics(form(service=service, serviceInstance=instance), message)


def meaning(kind: int, message: Any) -> Iterator[Row]:
    """The rows that a message stands for; of an instance that nobody knows there are none."""
    if kind in NEWER:
        if message.serviceInstanceId in REGISTERED:
            yield from meaning(*newer(kind, message))
        return
    if kind in (Kind.JVM_METRICS, Kind.CLR_METRICS):
        of = _jvm_parts if kind == Kind.JVM_METRICS else _clr_parts
        for metric in message.metrics:
            for source, attributes in of(metric):
                who = message.service, message.serviceInstance, ""
                yield Row(source, metric.time, *who, attributes)
        return
    if kind in (Kind.METER, Kind.METER_COLLECTION):
        said = meter.MeterData()
        for one in [message] if kind == Kind.METER else message.meterData:
            said = meter.MeterData(
                service=one.service or said.service,
                serviceInstance=one.serviceInstance or said.serviceInstance,
                timestamp=one.timestamp or said.timestamp,
            )
            if said.service and said.serviceInstance and said.timestamp:
                yield from _metered(one, said)
        return
    if kind == Kind.MESH_METRICS:
        for one in message.httpMetrics.metrics:
            yield from _http(one)
        for one in message.tcpMetrics.metrics:
            yield from _tcp(one)
        return
    service, version, page = message.service, message.serviceVersion, message.pagePath
    if kind in (Kind.BROWSER_PAGE, Kind.BROWSER_ERROR):
        counted = {"count": 1, "trafficCategory": "NORMAL"}
        if kind == Kind.BROWSER_ERROR:
            counted["trafficCategory"] = "FIRST_ERROR" if message.firstReportedError else "ERROR"
            names = ["AJAX", "RESOURCE", "VUE", "PROMISE", "JS", "UNKNOWN"]
            known = 0 <= message.category < len(names)
            counted["errorCategory"] = names[message.category] if known else "UNKNOWN"
        yield Row("BrowserAppTraffic", message.time, service, "", "", counted)
        yield Row("BrowserAppSingleVersionTraffic", message.time, service, version, "", counted)
        yield Row("BrowserAppPageTraffic", message.time, service, "", page, counted)
    if kind != Kind.BROWSER_ERROR:
        source, attributes = _page_part(kind, message)
        yield Row(source, message.time, service, "", page, attributes)


def _http(one: Any) -> Iterator[Row]:
    told = {
        "latency": one.latency,
        "status": one.status,
        "httpResponseStatusCode": one.responseCode,
        "type": {0: "HTTP", 1: "gRPC"}.get(one.protocol, "RPC"),
        "sideCar.internalRequestLatencyNanos": one.internalRequestLatencyNanos,
        "sideCar.internalResponseLatencyNanos": one.internalResponseLatencyNanos,
    }
    dest, instance = one.destServiceName, one.destServiceInstance
    if one.detectPoint == DetectPoint.server:
        yield Row("Service", one.startTime, dest, "", "", {**told, "tlsMode": one.tlsMode})
        if instance:
            yield Row("ServiceInstance", one.startTime, dest, instance, "", told)
        if one.endpoint:
            yield Row("Endpoint", one.startTime, dest, "", one.endpoint, told)
    component = {0: 49, 1: 23}.get(one.protocol, 50)
    yield from _between("Service", one, told | {"componentId": component}, component)


def _tcp(one: Any) -> Iterator[Row]:
    told = {"receivedBytes": one.receivedBytes, "sentBytes": one.sentBytes}
    dest, instance = one.destServiceName, one.destServiceInstance
    if one.detectPoint == DetectPoint.server:
        yield Row("TCPService", one.startTime, dest, "", "", told)
        if instance:
            yield Row("TCPServiceInstance", one.startTime, dest, instance, "", told)
    yield from _between("TCPService", one, told | {"componentId": 110}, 110)


def _between(kind: str, one: Any, told: dict[str, Any], component: int) -> Iterator[Row]:
    point = {0: "CLIENT", 1: "SERVER", 2: "PROXY"}.get(one.detectPoint, "SERVER")
    told = {**told, "tlsMode": one.tlsMode, "detectPoint": point}
    origin, of_origin = one.sourceServiceName, one.sourceServiceInstance
    dest, instance = one.destServiceName, one.destServiceInstance
    if origin:
        ends = (origin, "", component, point)
        yield Row(f"{kind}Relation", one.startTime, dest, "", "", told, *ends)
    if origin and of_origin and instance:
        ends = (origin, of_origin, component, point)
        yield Row(f"{kind}InstanceRelation", one.startTime, dest, instance, "", told, *ends)


def _page_part(kind: int, message: Any) -> tuple[str, dict[str, Any]]:
    if kind == Kind.BROWSER_PAGE:
        times = [one.name for one in message.DESCRIPTOR.fields if one.name.endswith("Time")]
        return "BrowserAppPagePerf", {name: getattr(message, name) for name in times}
    if kind == Kind.BROWSER_WEB_VITALS:
        sound = abs(message.cls) < 2**31 / 1000
        cls = int((message.cls * 1000 + 0.5) // 1) if sound else -1
        times = {"fmpTime": message.fmpTime, "lcpTime": message.lcpTime}
        return "BrowserAppWebVitalsPerf", {"cls": cls, **times}
    if kind == Kind.BROWSER_RESOURCE:
        return "BrowserAppResourcePerf", {
            "name": message.name,
            "type": message.resourceType,
            "protocol": message.protocol,
            "duration": message.duration,
            "size": message.size,
        }
    return "BrowserAppWebInteractionPerf", {"inpTime": message.inpTime}


def _series(one: Any, instance: str) -> str | None:
    """The instance and the labels by name, with a control character between them."""
    labels = [(label.name, label.value) for label in one.singleValue.labels]
    written = [f"{name}={value}" for name, value in sorted(labels, key=lambda label: label[0])]
    series = "\x1f".join(part.replace("\x1f", " ") for part in [instance, *written])
    return series if len(series) <= 1_000 else None


def _metered(one: meter.MeterData, said: meter.MeterData) -> Iterator[Row]:
    """`said` is of whom, and when: by this one, or by one before it."""
    who = said.timestamp, said.service, said.serviceInstance, ""
    for bucket in one.histogram.values:
        yield Row("InstanceHistogram", *who, {"meter": one.histogram.name, **_bucket(bucket)})
    if one.HasField("singleValue"):
        told = one.singleValue
        attributes = {"meter": told.name, "value": _whole(told.value)}
        yield Row("InstanceMeter", *who, attributes)
        if told.name.startswith("sw_stl_"):
            attributes = {**attributes, "series": _series(one, said.serviceInstance)}
            service = f"satellite::{said.service}"
            yield Row("ServiceMeter", said.timestamp, service, "", "", attributes)


def _bucket(told: meter.MeterBucketValue) -> dict[str, Any]:
    begins = float("-inf") if told.isNegativeInfinity else told.bucket
    whole = int(min(max(begins, -(2.0**63)), 2.0**63)) if begins == begins else 0
    return {"bucket": str(min(whole, 2**63 - 1)), "count": min(max(told.count, 0), 2**53)}


def _whole(value: float) -> int:
    if not 0 < value < float("inf"):
        return 0
    return 1 if value < 1 else int(min(value, 2.0**53) + 0.5)


def _percent(cpu: CPU) -> float:
    used = cpu.usagePercent
    return used if used - used == 0 else 0.0


def _jvm_parts(metric: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if metric.HasField("cpu"):
        yield "ServiceInstanceJVMCPU", {"usePercent": max(_percent(metric.cpu), 1.0)}
    for one in metric.memory:
        kept = {"heapStatus": one.isHeap, "used": one.used, "max": one.max}
        yield "ServiceInstanceJVMMemory", kept
    pools = runtime.PoolType.values()
    for one in metric.memoryPool:
        name = runtime.PoolType.Name(one.type) if one.type in pools else None
        kept = {"poolType": name, "used": one.used, "max": one.max}
        yield "ServiceInstanceJVMMemoryPool", kept
    for one in metric.gc:
        phase = {0: "NEW", 1: "OLD", 2: "NORMAL"}.get(one.phase)
        yield "ServiceInstanceJVMGC", {"phase": phase, "time": one.time, "count": one.count}
    for source, part in (("Thread", "thread"), ("Class", "clazz")):
        if metric.HasField(part):
            yield f"ServiceInstanceJVM{source}", _fields(getattr(metric, part))


def _clr_parts(metric: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if metric.HasField("cpu"):
        yield "ServiceInstanceCLRCPU", {"usePercent": _percent(metric.cpu)}
    for source, part in (("GC", "gc"), ("Thread", "thread")):
        if metric.HasField(part):
            told = _fields(getattr(metric, part))
            kept = {name[0].lower() + name[1:]: value for name, value in told.items()}
            yield f"ServiceInstanceCLR{source}", kept


def _fields(message: Any) -> dict[str, Any]:
    return {one.name: getattr(message, one.name) for one in message.DESCRIPTOR.fields}


def _filled(message: Any, random: Random) -> Any:
    for one in message.DESCRIPTOR.fields:
        if one.cpp_type in (one.CPPTYPE_INT32, one.CPPTYPE_INT64):
            setattr(message, one.name, random.choice([-1, 0, 1, random.randrange(10**6)]))
    return message


def _time(random: Random, now_ms: int) -> int:
    return now_ms - random.randrange(180_000)


def _jvm(random: Random, now_ms: int) -> tuple[int, Message]:
    told = runtime.JVMMetricCollection(service="shop", serviceInstance=random.choice("ab"))
    for _ in range(random.randrange(4)):
        metric = told.metrics.add(time=_time(random, now_ms))
        if random.random() < 0.8:
            metric.cpu.usagePercent = random.choice(PERCENTS)
        for _ in range(random.randrange(3)):
            _filled(metric.memory.add(isHeap=random.random() < 0.5), random)
        for _ in range(random.randrange(4)):
            _filled(metric.memoryPool.add(), random).type = random.randrange(12)
        for _ in range(random.randrange(3)):
            _filled(metric.gc.add(), random).phase = random.randrange(4)
        if random.random() < 0.5:
            _filled(metric.thread, random)
            _filled(metric.clazz, random)
    return Kind.JVM_METRICS, told


def _clr(random: Random, now_ms: int) -> tuple[int, Message]:
    told = runtime.CLRMetricCollection(service="desk", serviceInstance=random.choice("ab"))
    for _ in range(random.randrange(3)):
        metric = told.metrics.add(time=_time(random, now_ms))
        metric.cpu.usagePercent = random.choice(PERCENTS)
        if random.random() < 0.7:
            _filled(metric.gc, random)
            _filled(metric.thread, random)
    return Kind.CLR_METRICS, told


def _v2_jvm(random: Random, now_ms: int) -> tuple[int, Message]:
    told = v2_runtime.JVMMetricCollection(serviceInstanceId=random.choice([3, 5, 99]))
    return Kind.V2_JVM_METRICS, _with_metrics(told, _jvm(random, now_ms)[1])


def _v2_clr(random: Random, now_ms: int) -> tuple[int, Message]:
    told = v2_runtime.CLRMetricCollection(serviceInstanceId=random.choice([3, 5, 99]))
    return Kind.V2_CLR_METRICS, _with_metrics(told, _clr(random, now_ms)[1])


def _with_metrics(told: Any, others: Any) -> Message:
    """Those of the other protocol, as far as this one has them: the numbers of fields are equal."""
    for one in others.metrics:
        told.metrics.add().MergeFromString(one.SerializeToString())
    told.DiscardUnknownFields()
    return told


METERS = (
    *("instance_pvm_gc_g0", "instance_nodejs_rss", "of_nobody", "sw_stl_of_nobody"),
    *("sw_stl_gatherer_receive_count", "sw_stl_pipeline_queue_partition_size"),
    "sw_stl_grpc_server_cpu_gauge",
)
HISTOGRAMS = ("instance_golang_gc_pauses", "tracing_context_performance", "of_nobody")
BUCKETS = (0.0, 0.4, -7.9, 10.0, 1e19, -1e19, float("nan"), float("inf"), float("-inf"))
COUNTS = (-1, 0, 1, 7, 2**60)
LABELS = (("pipe", "é"), ("pipe", ""), ("status", "a=b"), ("type", "x" * 990), ("part", "0\x1f1"))
VALUES = (-3.0, 0.0, 0.2, 1.0, 2.5, 123.4, 9e18, float("nan"), float("inf"))


def _sample(random: Random, now_ms: int) -> meter.MeterData:
    told = meter.MeterData(service=random.choice(["snake", "snake", ""]))
    told.serviceInstance = random.choice(["s-1", "s-2", "s-2", ""])
    told.timestamp = random.choice([0, _time(random, now_ms), _time(random, now_ms)])
    if random.random() < 0.2:
        told.histogram.name = random.choice(HISTOGRAMS)
        for bucket in random.sample(BUCKETS, random.randrange(5)):
            told.histogram.values.add(bucket=bucket, count=random.choice(COUNTS))
            told.histogram.values[-1].isNegativeInfinity = random.random() < 0.1
    else:
        told.singleValue.name = random.choice(METERS)
        told.singleValue.value = random.choice(VALUES)
        for name, value in random.sample(LABELS, random.randrange(4)):
            told.singleValue.labels.add(name=name, value=value)
    return told


def _meter(random: Random, now_ms: int) -> tuple[int, Message]:
    return Kind.METER, _sample(random, now_ms)


def _meters(random: Random, now_ms: int) -> tuple[int, Message]:
    samples = [_sample(random, now_ms) for _ in range(random.randrange(4))]
    return Kind.METER_COLLECTION, meter.MeterDataCollection(meterData=samples)


def _mesh(random: Random, now_ms: int) -> tuple[int, Message]:
    told = mesh.ServiceMeshMetrics()
    metrics: Any = random.choice([told.httpMetrics, told.tcpMetrics]).metrics
    for _ in range(random.randrange(4)):
        one = _filled(metrics.add(), random)
        one.startTime, one.detectPoint = _time(random, now_ms), random.randrange(4)
        one.sourceServiceName, one.sourceServiceInstance = random.choice(
            [("a", "a-1"), ("a", ""), ("", "")]
        )
        one.destServiceName, one.destServiceInstance = "b", random.choice(["b-1", ""])
        one.tlsMode = random.choice(["", "NONE", "TLS", "mTLS"])
        if metrics is told.httpMetrics.metrics:
            one.endpoint, one.status = random.choice(["/x", "/y", ""]), random.random() < 0.7
            one.protocol = random.randrange(3)
    return Kind.MESH_METRICS, told


def _on_page(message: Any, random: Random, now_ms: int) -> Any:
    _filled(message, random)
    message.service, message.serviceVersion = "web", random.choice(["v1", "v2"])
    message.pagePath, message.time = random.choice(["/", "/cart"]), _time(random, now_ms)
    return message


def _page(random: Random, now_ms: int) -> tuple[int, Message]:
    return Kind.BROWSER_PAGE, _on_page(browser.BrowserPerfData(), random, now_ms)


def _vitals(random: Random, now_ms: int) -> tuple[int, Message]:
    told = _on_page(browser.BrowserWebVitalsPerfData(), random, now_ms)
    told.cls = random.choice(CLS)
    return Kind.BROWSER_WEB_VITALS, told


def _resource(random: Random, now_ms: int) -> tuple[int, Message]:
    told = _on_page(browser.BrowserResourcePerfData(), random, now_ms)
    told.name, told.protocol = random.choice(["a.js", "b.css"]), random.choice(["h2", "", "h3"])
    told.resourceType = random.choice(["script", "css"])
    return Kind.BROWSER_RESOURCE, told


def _interaction(random: Random, now_ms: int) -> tuple[int, Message]:
    told = _on_page(browser.BrowserWebInteractionsPerfData(), random, now_ms)
    return Kind.BROWSER_INTERACTION, told


def _error(random: Random, now_ms: int) -> tuple[int, Message]:
    told = _on_page(browser.BrowserErrorLog(), random, now_ms)
    told.category, told.firstReportedError = random.randrange(7), random.random() < 0.5
    return Kind.BROWSER_ERROR, told

"""Field numbers and wire types, against bytes written by hand from the published numbers.

A tag is the field's number times eight plus the wire type: 0 a varint, 1 eight bytes, 2 a length
and that many bytes. So 0a = field 1 with a length, 10 = field 2 with a varint.
"""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from skyfarer.wire import messages as m

EPOCH_MS = 1_700_000_000_000
# That moment as a varint: 1 700 000 000 000 in groups of seven bits, lowest first.
EPOCH = "80 d0 95 ff bc 31"
MINUS_ONE = "ff ff ff ff ff ff ff ff ff 01"


def pair(key: str, value: str) -> m.KeyStringValuePair:
    return m.KeyStringValuePair(key=key, value=value)


GOLDEN: dict[str, tuple[Message, str]] = {
    "segment": (
        m.SegmentObject(
            traceId="t",
            traceSegmentId="s",
            spans=[m.SpanObject()],
            service="a",
            serviceInstance="i",
            isSizeLimited=True,
        ),
        "0a 01 74  12 01 73  1a 00  22 01 61  2a 01 69  30 01",
    ),
    "root span": (
        m.SpanObject(
            parentSpanId=-1,
            startTime=EPOCH_MS,
            endTime=EPOCH_MS,
            operationName="/",
            peer="p",
            spanType=m.SpanType.Exit,
            spanLayer=m.SpanLayer.FAAS,
            componentId=300,
            isError=True,
            tags=[pair("k", "v")],
            logs=[m.Log(time=1, data=[pair("k", "v")])],
            skipAnalysis=True,
        ),
        f"10 {MINUS_ONE}  18 {EPOCH}  20 {EPOCH}  32 01 2f  3a 01 70  40 01  48 06  50 ac 02"
        "  58 01  62 06 0a 01 6b 12 01 76  6a 0a 08 01 12 06 0a 01 6b 12 01 76  70 01",
    ),
    "span of a language model": (
        m.SpanObject(spanLayer=m.SpanLayer.GenAI),
        "48 07",
    ),
    "span with a reference": (
        m.SpanObject(
            spanId=3,
            refs=[
                m.SegmentReference(
                    refType=m.RefType.CrossThread,
                    traceId="t",
                    parentTraceSegmentId="s",
                    parentSpanId=2,
                    parentService="a",
                    parentServiceInstance="i",
                    parentEndpoint="e",
                    networkAddressUsedAtPeer="n",
                )
            ],
        ),
        "08 03  2a 16 08 01 12 01 74 1a 01 73 20 02 2a 01 61 32 01 69 3a 01 65 42 01 6e",
    ),
    "collection": (
        m.SegmentCollection(segments=[m.SegmentObject(traceId="t"), m.SegmentObject()]),
        "0a 03 0a 01 74  0a 00",
    ),
    "span attached event": (
        m.SpanAttachedEvent(
            startTime=m.Instant(seconds=1, nanos=2),
            summary=[m.KeyIntValuePair(key="k", value=-1)],
            traceContext=m.SpanAttachedEvent.SpanReference(
                type=m.SpanAttachedEvent.SpanReferenceType.ZIPKIN, spanId="x"
            ),
        ),
        f"0a 04 08 01 10 02  2a 0e 0a 01 6b 10 {MINUS_ONE}  32 05 08 01 22 01 78",
    ),
    "instance properties": (
        m.InstanceProperties(
            service="a", serviceInstance="i", properties=[pair("k", "v")], layer="L"
        ),
        "0a 01 61  12 01 69  1a 06 0a 01 6b 12 01 76  22 01 4c",
    ),
    "instance ping": (
        m.InstancePingPkg(service="a", serviceInstance="i", layer="L"),
        "0a 01 61  12 01 69  1a 01 4c",
    ),
    "commands": (
        m.Commands(commands=[m.Command(command="c", args=[pair("k", "v")])]),
        "0a 0b 0a 01 63 12 06 0a 01 6b 12 01 76",
    ),
    "log": (
        m.log.LogData(
            timestamp=1,
            endpoint="e",
            body=m.log.LogDataBody(type="t", json=m.log.JSONLog(json="j")),
            traceContext=m.log.TraceContext(spanId=2),
            layer="L",
        ),
        "08 01  22 01 65  2a 08 0a 01 74 1a 03 0a 01 6a  32 02 18 02  42 01 4c",
    ),
    "event": (
        m.event.Event(
            source=m.event.Source(endpoint="e"),
            type=m.event.Type.Error,
            parameters={"k": "v"},
            layer="L",
        ),
        "12 03 1a 01 65  20 01  32 06 0a 01 6b 12 01 76  4a 01 4c",
    ),
    "meter": (
        m.meter.MeterData(
            histogram=m.meter.MeterHistogram(
                values=[m.meter.MeterBucketValue(bucket=1.0, count=2, isNegativeInfinity=True)]
            ),
            serviceInstance="i",
            timestamp=1,
        ),
        "12 0f 1a 0d 09 00 00 00 00 00 00 f0 3f 10 02 18 01  22 01 69  28 01",
    ),
    "JVM metrics": (
        m.runtime.JVMMetricCollection(
            metrics=[
                m.runtime.JVMMetric(
                    cpu=m.CPU(usagePercent=1.0),
                    gc=[m.runtime.GC(phase=m.runtime.GCPhase.NORMAL, count=3)],
                    clazz=m.runtime.Class(totalLoadedClassCount=4),
                )
            ],
            serviceInstance="i",
        ),
        "0a 15 12 09 11 00 00 00 00 00 00 f0 3f 2a 04 08 02 10 03 3a 02 18 04  1a 01 69",
    ),
    "browser resource": (
        m.browser.BrowserResourcePerfData(size=1, resourceType="r", protocol="p"),
        "38 01  42 01 72  4a 01 70",
    ),
    "mesh": (
        m.mesh.ServiceMeshMetrics(
            tcpMetrics=m.mesh.TCPServiceMeshMetrics(
                metrics=[m.mesh.TCPServiceMeshMetric(detectPoint=m.DetectPoint.proxy, sentBytes=1)]
            )
        ),
        "12 06 0a 04 38 02 78 01",
    ),
    "pprof": (
        m.profiler.PprofData(
            metadata=m.profiler.PprofMetaData(contentSize=1, taskId="t"), content=b"c"
        ),
        "0a 05 1a 01 74 28 01  1a 01 63",
    ),
    "remote": (
        m.remote.RemoteMessage(
            nextWorkerName="w",
            remoteData=m.remote.RemoteData(
                dataStrings=["s"], dataLongs=[1, 2], dataIntegers=[3], dataObjectStrings=["o"]
            ),
        ),
        "0a 01 77  1a 0d 0a 01 73 12 02 01 02 22 01 03 2a 01 6f",
    ),
    "v2 services": (
        m.v2_register.Services(
            services=[
                m.v2_register.Service(
                    serviceName="a",
                    properties=[m.v2_register.KeyStringValuePair(key="k", value="v")],
                    type=m.v2_register.ServiceType.browser,
                )
            ]
        ),
        "0a 0d 0a 01 61 22 06 0a 01 6b 12 01 76 28 04",
    ),
    "v2 mapping": (
        m.v2_register.ServiceInstanceRegisterMapping(
            serviceInstances=[m.v2_register.KeyIntValuePair(key="u", value=2)]
        ),
        "0a 05 0a 01 75 10 02",
    ),
    "v2 ping": (
        m.v2_register.ServiceInstancePingPkg(
            serviceInstanceId=2, time=EPOCH_MS, serviceInstanceUUID="u"
        ),
        f"08 02  10 {EPOCH}  1a 01 75",
    ),
    "v2 upstream segment": (
        m.v2_trace.UpstreamSegment(
            globalTraceIds=[m.v2_trace.UniqueId(idParts=[1, 2, 3])], segment=b"x"
        ),
        "0a 05 0a 03 01 02 03  12 01 78",
    ),
    "v2 segment": (
        m.v2_trace.SegmentObject(
            traceSegmentId=m.v2_trace.UniqueId(idParts=[1]),
            spans=[m.v2_trace.SpanObjectV2(operationNameId=2, isError=True, peer="p")],
            serviceInstanceId=3,
        ),
        "0a 03 0a 01 01  12 07 30 02 4a 01 70 70 01  20 03",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_message_is_written_as_published(name: str) -> None:
    message, golden = GOLDEN[name]
    assert message.SerializeToString(deterministic=True).hex(" ") == " ".join(golden.split())


@pytest.mark.parametrize("name", GOLDEN)
def test_message_is_read_as_published(name: str) -> None:
    message, golden = GOLDEN[name]
    assert type(message).FromString(bytes.fromhex(golden)) == message


def test_span_layer_of_a_newer_agent_keeps_its_number() -> None:
    span = m.SpanObject.FromString(bytes.fromhex("48 08"))
    assert span.spanLayer == 8
    assert span.SerializeToString() == bytes.fromhex("48 08")


def test_unknown_field_of_a_newer_agent_survives_decoding() -> None:
    payload = bytes.fromhex("0a 01 74  9a 06 01 78")
    assert m.SegmentObject.FromString(payload).SerializeToString() == payload

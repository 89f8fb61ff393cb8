"""What OpenTelemetry's export requests are made of: message → field → number and type.

`*` is repeated. `hex` are bytes that its JSON writes as hexadecimal digits, unlike all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_POINT: Final = "startTimeUnixNano=2:fixed64 timeUnixNano=3:fixed64"
_SCOPED: Final = "scope=1:InstrumentationScope schemaUrl=3:string"
_TEXT: Final = f"""
ExportTraceServiceRequest resourceSpans=1:ResourceSpans*
ResourceSpans resource=1:Resource scopeSpans=2:ScopeSpans* schemaUrl=3:string
ScopeSpans {_SCOPED} spans=2:Span*
Span traceId=1:hex spanId=2:hex traceState=3:string parentSpanId=4:hex name=5:string kind=6:enum
 startTimeUnixNano=7:fixed64 endTimeUnixNano=8:fixed64 attributes=9:KeyValue*
 droppedAttributesCount=10:uint32 events=11:Event* droppedEventsCount=12:uint32 links=13:Link*
 droppedLinksCount=14:uint32 status=15:Status flags=16:fixed32
Event timeUnixNano=1:fixed64 name=2:string attributes=3:KeyValue* droppedAttributesCount=4:uint32
Link traceId=1:hex spanId=2:hex traceState=3:string attributes=4:KeyValue*
 droppedAttributesCount=5:uint32 flags=6:fixed32
Status message=2:string code=3:enum

ExportMetricsServiceRequest resourceMetrics=1:ResourceMetrics*
ResourceMetrics resource=1:Resource scopeMetrics=2:ScopeMetrics* schemaUrl=3:string
ScopeMetrics {_SCOPED} metrics=2:Metric*
Metric name=1:string description=2:string unit=3:string gauge=5:Gauge sum=7:Sum
 histogram=9:Histogram exponentialHistogram=10:ExponentialHistogram summary=11:Summary
 metadata=12:KeyValue*
Gauge dataPoints=1:NumberDataPoint*
Sum dataPoints=1:NumberDataPoint* aggregationTemporality=2:enum isMonotonic=3:bool
Histogram dataPoints=1:HistogramDataPoint* aggregationTemporality=2:enum
ExponentialHistogram dataPoints=1:ExponentialHistogramDataPoint* aggregationTemporality=2:enum
Summary dataPoints=1:SummaryDataPoint*
NumberDataPoint {_POINT} asDouble=4:double exemplars=5:Exemplar* asInt=6:sfixed64
 attributes=7:KeyValue* flags=8:uint32
HistogramDataPoint {_POINT} count=4:fixed64 sum=5:double bucketCounts=6:fixed64*
 explicitBounds=7:double* exemplars=8:Exemplar* attributes=9:KeyValue* flags=10:uint32
 min=11:double max=12:double
ExponentialHistogramDataPoint attributes=1:KeyValue* {_POINT} count=4:fixed64 sum=5:double
 scale=6:sint32 zeroCount=7:fixed64 positive=8:Buckets negative=9:Buckets flags=10:uint32
 exemplars=11:Exemplar* min=12:double max=13:double zeroThreshold=14:double
Buckets offset=1:sint32 bucketCounts=2:uint64*
SummaryDataPoint {_POINT} count=4:fixed64 sum=5:double quantileValues=6:ValueAtQuantile*
 attributes=7:KeyValue* flags=8:uint32
ValueAtQuantile quantile=1:double value=2:double
Exemplar timeUnixNano=2:fixed64 asDouble=3:double spanId=4:hex traceId=5:hex asInt=6:sfixed64
 filteredAttributes=7:KeyValue*

ExportLogsServiceRequest resourceLogs=1:ResourceLogs*
ResourceLogs resource=1:Resource scopeLogs=2:ScopeLogs* schemaUrl=3:string
ScopeLogs {_SCOPED} logRecords=2:LogRecord*
LogRecord timeUnixNano=1:fixed64 severityNumber=2:enum severityText=3:string body=5:AnyValue
 attributes=6:KeyValue* droppedAttributesCount=7:uint32 flags=8:fixed32 traceId=9:hex spanId=10:hex
 observedTimeUnixNano=11:fixed64 eventName=12:string

Resource attributes=1:KeyValue* droppedAttributesCount=2:uint32 entityRefs=3:EntityRef*
EntityRef schemaUrl=1:string type=2:string idKeys=3:string* descriptionKeys=4:string*
InstrumentationScope name=1:string version=2:string attributes=3:KeyValue*
 droppedAttributesCount=4:uint32
KeyValue key=1:string value=2:AnyValue
AnyValue stringValue=1:string boolValue=2:bool intValue=3:int64 doubleValue=4:double
 arrayValue=5:ArrayValue kvlistValue=6:KeyValueList bytesValue=7:bytes
ArrayValue values=1:AnyValue*
KeyValueList values=1:KeyValue*
"""


@dataclass(frozen=True, slots=True)
class Field:
    number: int
    type: str
    repeated: bool


Fields = Mapping[str, Field]


def _fields(text: str) -> Mapping[str, Fields]:
    messages: dict[str, dict[str, Field]] = {}
    fields: dict[str, Field] = {}
    for word in text.split():
        name, _, what = word.partition("=")
        if not what:
            fields = messages[name] = {}
            continue
        number, _, of_type = what.partition(":")
        fields[name] = Field(int(number), of_type.rstrip("*"), of_type.endswith("*"))
    return messages


MESSAGES: Final = _fields(_TEXT)

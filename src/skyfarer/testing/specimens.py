"""Valid messages of every kind that a receiver takes, filled in from their descriptors.

Names, times and ids look like those of agents, so that a specimen is analysed and not parked. A
field that the descriptor has and no agent sends is filled in too: a decoder reads it all the same.
Messages whose description the project does not have (Envoy, eBPF, OTLP metrics) have a stand-in of
another message, since the receivers and the queue take their bytes unread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from skyfarer.testing.traces import Exit, cache, caller, database, produce, segment
from skyfarer.wire import messages as wire
from skyfarer.wire.rpc import Kind

DEPTH_MAX: Final = 6
"""How deep a specimen is: a message that may hold itself would never end."""
ELEMENTS_MAX: Final = 3
SPREAD_MS: Final = 50_000
"""Times of one specimen lie in one minute, or in two."""

MESSAGES: Final[Mapping[int, type[Any]]] = {
    Kind.SEGMENT: wire.SegmentObject,
    Kind.INSTANCE_PROPERTIES: wire.InstanceProperties,
    Kind.INSTANCE_PING: wire.InstancePingPkg,
    Kind.SPAN_ATTACHED_EVENT: wire.SpanAttachedEvent,
    Kind.LOG: wire.log.LogData,
    Kind.EVENT: wire.event.Event,
    Kind.METER: wire.meter.MeterData,
    Kind.METER_COLLECTION: wire.meter.MeterDataCollection,
    Kind.JVM_METRICS: wire.runtime.JVMMetricCollection,
    Kind.CLR_METRICS: wire.runtime.CLRMetricCollection,
    Kind.PROFILE_SNAPSHOT: wire.profile.ThreadSnapshot,
    Kind.PROFILE_GO: wire.profile.GoProfileData,
    Kind.PROFILE_FINISH: wire.profile.ProfileTaskFinishReport,
    Kind.BROWSER_PAGE: wire.browser.BrowserPerfData,
    Kind.BROWSER_WEB_VITALS: wire.browser.BrowserWebVitalsPerfData,
    Kind.BROWSER_RESOURCE: wire.browser.BrowserResourcePerfData,
    Kind.BROWSER_INTERACTION: wire.browser.BrowserWebInteractionsPerfData,
    Kind.BROWSER_ERROR: wire.browser.BrowserErrorLog,
    Kind.MESH_METRICS: wire.mesh.ServiceMeshMetrics,
    Kind.ASYNC_PROFILE: wire.profiler.AsyncProfilerData,
    Kind.PPROF: wire.profiler.PprofData,
    Kind.V2_SEGMENT: wire.v2_trace.UpstreamSegment,
    Kind.V2_INSTANCE_PING: wire.v2_register.ServiceInstancePingPkg,
    Kind.V2_JVM_METRICS: wire.v2_runtime.JVMMetricCollection,
    Kind.V2_CLR_METRICS: wire.v2_runtime.CLRMetricCollection,
    Kind.OTLP_TRACES: wire.otlp_trace.ExportTraceServiceRequest,
    Kind.OTLP_LOGS: wire.otlp_logs.ExportLogsServiceRequest,
    Kind.OTLP_METRICS: wire.otlp_trace.ExportTraceServiceRequest,
    Kind.INVENTORY: wire.inventory.InventorySource,
}
STAND_IN: Final = wire.SegmentObject
NESTED: Final[Mapping[str, type[Any]]] = {
    wire.v2_trace.UpstreamSegment.DESCRIPTOR.fields_by_name[
        "segment"
    ].full_name: wire.v2_trace.SegmentObject
}
"""Fields of bytes that hold a message."""


class Specimen(NamedTuple):
    """A valid message of that kind, and its descriptor, which `mutations` reads it by."""

    kind: int
    payload: bytes
    descriptor: Any


class Specimens:
    """Makes them of one random source, with times of the minute that begins at `now_ms`."""

    def __init__(self, random: Random, now_ms: int, service: str = "hostile") -> None:
        self._random, self._now_ms, self._service = random, now_ms, service
        self._number = 0

    def of(self, kind: int) -> Specimen:
        """A specimen of that kind; of segments every second one is like those of real agents."""
        self._number += 1
        message = MESSAGES.get(kind, STAND_IN)
        if kind == Kind.SEGMENT and self._number % 2:
            return Specimen(kind, self._of_an_agent(), message.DESCRIPTOR)
        return self.filled(message, kind)

    def filled(self, message: type[Any], kind: int = Kind.NONE) -> Specimen:
        """A specimen of any message, every field of it filled in."""
        made = message()
        self._fill(made, 0)
        return Specimen(kind, bytes(made.SerializeToString()), message.DESCRIPTOR)

    def _of_an_agent(self) -> bytes:
        """A segment that answers another and calls a service, a database, a cache and a queue."""
        service, now_ms, ids = self._service, self._now_ms, self._random.randbytes(16).hex()
        web = f"{service}-web"
        called = Exit("POST:/cart", "cart:80", 1, 30)
        front = segment(
            *(web, f"{web}-0", "GET:/", now_ms, 40),
            trace_id=f"{ids}.1",
            segment_id=f"{ids}.2",
            exits=[called],
        )
        exits = [
            Exit("POST:/stock", "stock:80", 1, 30, error=True),
            database("db:5432", "SELECT 1", 2, 900),
            cache("redis:6379", "GET", "key", 3, 2),
            produce("mq:9092", "orders", 4, 3),
        ]
        made = segment(
            *(f"{service}-0", f"{service}-0-1", "POST:/cart", now_ms + 2, 35, True),
            callers=[caller(front, 1)],
            exits=exits,
            trace_id=f"{ids}.1",
            segment_id=f"{ids}.3",
        )
        return bytes(made.SerializeToString())

    def _fill(self, message: Any, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            if field.message_type is not None and depth >= DEPTH_MAX:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                getattr(message, field.name)["key"] = "value"
            elif field.is_repeated:
                self._extend(getattr(message, field.name), field, depth)
            elif field.message_type is not None:
                getattr(message, field.name).SetInParent()
                self._fill(getattr(message, field.name), depth + 1)
            else:
                setattr(message, field.name, self._value(field))

    def _extend(self, elements: Any, field: Any, depth: int) -> None:
        most = ELEMENTS_MAX if depth < 2 else 1
        for _ in range(self._random.randint(1, most)):
            if field.message_type is not None:
                self._fill(elements.add(), depth + 1)
            else:
                elements.append(self._value(field))

    def _value(self, field: Any) -> Any:
        if field.full_name in NESTED:
            return self.filled(NESTED[field.full_name]).payload
        if field.enum_type is not None:
            return self._random.choice(field.enum_type.values).number
        return _MAKERS[field.cpp_type](self, field)

    def _text(self, field: Any) -> Any:
        name, number = field.name.lower(), self._random.randrange(10)
        if field.type == field.TYPE_BYTES:
            return self._random.randbytes(8 if "span" in name else 16)
        if "service" in name:
            return f"{self._service}-{number % 3}"
        if name == "layer":
            return "GENERAL"
        return f"{field.name}-{number}"

    def _whole(self, field: Any) -> int:
        name = field.name.lower()
        if name == "spanid":
            return self._random.randrange(4)
        at_ms = self._now_ms + self._random.randrange(SPREAD_MS)
        if "nano" in name and "time" in name:
            return at_ms * 1_000_000
        is_time = name.endswith("time") or name == "timestamp"
        if is_time and field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
            return at_ms
        return self._random.randrange(1, 200)


_Maker = Callable[[Specimens, Any], Any]
_INT32, _INT64, _UINT32, _UINT64, _DOUBLE, _FLOAT, _BOOL, _, _STRING = range(1, 10)
_MAKERS: Final[Mapping[int, _Maker]] = {
    **dict.fromkeys((_INT32, _INT64, _UINT32, _UINT64), Specimens._whole),
    **dict.fromkeys((_DOUBLE, _FLOAT), lambda one, field: one._random.uniform(0, 100)),
    _BOOL: lambda one, field: one._random.random() < 0.5,
    _STRING: Specimens._text,
}
"""By protobuf's number of the type that the field has in C++."""

"""The protocol's messages, for the rooms that decode them.

The only hand-written module that imports protobuf: whatever must stay small passes bytes along and
imports `rpc` and `split` instead. What every decoder needs is here by name; the rest is reached
through its module, since the v2 messages repeat the names of the v3 ones.
"""

from __future__ import annotations

from skyfarer.wire.generated import browser_pb2 as browser
from skyfarer.wire.generated import configuration_pb2 as configuration
from skyfarer.wire.generated import event_pb2 as event
from skyfarer.wire.generated import inventory_pb2 as inventory
from skyfarer.wire.generated import log_pb2 as log
from skyfarer.wire.generated import mesh_pb2 as mesh
from skyfarer.wire.generated import meter_pb2 as meter
from skyfarer.wire.generated import otlp_logs_pb2 as otlp_logs
from skyfarer.wire.generated import otlp_trace_pb2 as otlp_trace
from skyfarer.wire.generated import profile_pb2 as profile
from skyfarer.wire.generated import profiler_pb2 as profiler
from skyfarer.wire.generated import remote_pb2 as remote
from skyfarer.wire.generated import runtime_pb2 as runtime
from skyfarer.wire.generated import v2_register_pb2 as v2_register
from skyfarer.wire.generated import v2_runtime_pb2 as v2_runtime
from skyfarer.wire.generated import v2_trace_pb2 as v2_trace
from skyfarer.wire.generated.command_pb2 import Command, Commands
from skyfarer.wire.generated.management_pb2 import InstancePingPkg, InstanceProperties
from skyfarer.wire.generated.trace_pb2 import (
    Log,
    RefType,
    SegmentCollection,
    SegmentObject,
    SegmentReference,
    SpanAttachedEvent,
    SpanLayer,
    SpanObject,
    SpanType,
)
from skyfarer.wire.generated.value_pb2 import (
    CPU,
    DetectPoint,
    Instant,
    KeyIntValuePair,
    KeyStringValuePair,
)

__all__ = [
    "CPU",
    "Command",
    "Commands",
    "DetectPoint",
    "InstancePingPkg",
    "InstanceProperties",
    "Instant",
    "KeyIntValuePair",
    "KeyStringValuePair",
    "Log",
    "RefType",
    "SegmentCollection",
    "SegmentObject",
    "SegmentReference",
    "SpanAttachedEvent",
    "SpanLayer",
    "SpanObject",
    "SpanType",
    "browser",
    "configuration",
    "event",
    "inventory",
    "log",
    "mesh",
    "meter",
    "otlp_logs",
    "otlp_trace",
    "profile",
    "profiler",
    "remote",
    "runtime",
    "v2_register",
    "v2_runtime",
    "v2_trace",
]

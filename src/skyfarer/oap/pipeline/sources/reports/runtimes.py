"""What instances report of what they run on: JVMs, CLRs, meters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.layers import Layer
from skyfarer.oap.oal.values import NO_BEGINNING
from skyfarer.oap.pipeline.sources.reports.declared import INSTANCE_ID, Part, Report, named, same
from skyfarer.oap.pipeline.sources.shapes import CLASSES, THREADS

WHOLE_MAX: Final = 2**53
"""Of what is reported: a whole number up to it is the same as a double."""


def _percent(messages: pa.StructArray) -> pa.Array:
    """What is no number would stay in the sum of its minute, hour and day for good."""
    used = pc.struct_field(messages, "usagePercent")
    return pc.if_else(pc.is_finite(used), used, 0.0)


def _at_least_one(messages: pa.StructArray) -> pa.Array:
    return pc.max_element_wise(_percent(messages), 1.0)


def rounded(messages: pa.StructArray) -> pa.Array:
    """As the original does it: nothing below 0, and whatever is a little is 1."""
    value = pc.struct_field(messages, "value")
    most = pc.min_element_wise(pc.if_else(pc.is_finite(value), value, 0.0), float(WHOLE_MAX))
    whole = pc.floor(pc.add(pc.max_element_wise(most, 1.0), 0.5)).cast(pa.int64())
    return pc.if_else(pc.greater(most, 0.0), whole, 0)


def _beginning(buckets: pa.StructArray) -> pa.Array:
    """Where a bucket begins, as a text: as Java casts it, a whole number towards zero."""
    endless = pc.struct_field(buckets, "isNegativeInfinity")
    told = pc.if_else(endless, -math.inf, pc.struct_field(buckets, "bucket"))
    known = pc.if_else(pc.is_nan(told), 0.0, told)
    above = pc.greater_equal(known, -float(NO_BEGINNING))
    within = pc.max_element_wise(pc.if_else(above, 0.0, known), float(NO_BEGINNING))
    whole = pc.trunc(within).cast(pa.int64())
    return pc.if_else(above, -(NO_BEGINNING + 1), whole).cast(pa.string())


def _counted(buckets: pa.StructArray) -> pa.Array:
    count = pc.struct_field(buckets, "count")
    return pc.min_element_wise(pc.max_element_wise(count, 0), WHOLE_MAX)


def _histogram(messages: pa.StructArray) -> pa.Array:
    return pc.struct_field(pc.struct_field(messages, "histogram"), "name")


def _collections(phase: str) -> Part:
    values = {"phase": named("GCPhase", phase), **same("time", "count")}
    return Part("ServiceInstanceJVMGC", "gc", values)


_INSTANCE: Final = {"service": "service", "instance": "serviceInstance"}
_INSTANCE_V2: Final = {INSTANCE_ID: "serviceInstanceId"}
_USED: Final = (
    Part("ServiceInstanceJVMCPU", "cpu", {"usePercent": _at_least_one}),
    Part(
        "ServiceInstanceJVMMemory",
        "memory",
        {"heapStatus": "isHeap", **same("used", "max")},
    ),
    Part(
        "ServiceInstanceJVMMemoryPool",
        "memoryPool",
        {"poolType": named("MemoryPoolType", "type"), **same("used", "max")},
    ),
)
JVM = Report(
    Layer.GENERAL,
    _INSTANCE,
    (
        *_USED,
        _collections("phase"),
        Part(
            "ServiceInstanceJVMThread",
            "thread",
            same(*THREADS),
        ),
        Part(
            "ServiceInstanceJVMClass",
            "clazz",
            same(*CLASSES),
        ),
    ),
    each="metrics",
)
CLR = Report(
    Layer.GENERAL,
    _INSTANCE,
    (
        Part("ServiceInstanceCLRCPU", "cpu", {"usePercent": _percent}),
        Part(
            "ServiceInstanceCLRGC",
            "gc",
            {
                "gen0CollectCount": "Gen0CollectCount",
                "gen1CollectCount": "Gen1CollectCount",
                "gen2CollectCount": "Gen2CollectCount",
                "heapMemory": "HeapMemory",
            },
        ),
        Part(
            "ServiceInstanceCLRThread",
            "thread",
            {
                "availableCompletionPortThreads": "AvailableCompletionPortThreads",
                "availableWorkerThreads": "AvailableWorkerThreads",
                "maxCompletionPortThreads": "MaxCompletionPortThreads",
                "maxWorkerThreads": "MaxWorkerThreads",
            },
        ),
    ),
    each="metrics",
)
V2_JVM = replace(JVM, names=_INSTANCE_V2, parts=(*_USED, _collections("phrase")))
V2_CLR = replace(CLR, names=_INSTANCE_V2)
METER = Report(
    Layer.GENERAL,
    _INSTANCE,
    (
        Part("InstanceMeter", "singleValue", {"meter": "name", "value": rounded}),
        Part(
            "InstanceHistogram",
            "histogram.values",
            {"bucket": _beginning, "count": _counted},
            outer={"meter": _histogram},
        ),
    ),
    time="timestamp",
    of_each=True,
    needs=("service", "instance"),
)
METERS = replace(METER, each="meterData", carried=True)

"""Which fields of which messages the analysis wants.

Decoding costs by field (a trimmed SegmentObject decodes three times faster than a whole one), so a
shape names the fields to keep and the rest of the payload is skipped on the wire. Enums are read as
their numbers, so that a value of a newer agent is kept rather than refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from skyfarer.wire import messages
from skyfarer.wire.rpc import Kind


@dataclass(frozen=True)
class Shape:
    """A column of the source: one message type, trimmed.

    `fields`: message name → fields kept. `required`: what must not be empty, or the record says
    nothing that could be analysed.
    """

    column: str
    message: str
    fields: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...]


SEGMENT = Shape(
    column="segment",
    message="SegmentObject",
    fields={
        "SegmentObject": ("traceId", "traceSegmentId", "spans", "service", "serviceInstance"),
        "SpanObject": (
            *("spanId", "startTime", "endTime", "refs", "operationName", "spanType", "isError"),
            "skipAnalysis",
        ),
        "SegmentReference": ("refType",),
    },
    required=("traceSegmentId", "service", "spans"),
)
PROPERTIES = Shape(
    column="properties",
    message="InstanceProperties",
    fields={
        "InstanceProperties": ("service", "serviceInstance", "properties", "layer"),
        "KeyStringValuePair": ("key", "value"),
    },
    required=("service", "serviceInstance"),
)
PING = Shape(
    column="ping",
    message="InstancePingPkg",
    fields={"InstancePingPkg": ("service", "serviceInstance", "layer")},
    required=("service", "serviceInstance"),
)

SHAPES: Mapping[int, Shape] = {
    Kind.SEGMENT: SEGMENT,
    Kind.INSTANCE_PROPERTIES: PROPERTIES,
    Kind.INSTANCE_PING: PING,
}


def trimmed(shape: Shape) -> Descriptor:
    """The descriptor of the shape's message with only its kept fields, in a pool of its own."""
    return _trimmed(shape.message, tuple(sorted(shape.fields.items())))


@cache
def _trimmed(message: str, kept: tuple[tuple[str, tuple[str, ...]], ...]) -> Descriptor:
    file = FileDescriptorProto(name=f"trimmed_{message}.proto", package="trimmed", syntax="proto3")
    for name, fields in kept:
        whole = DescriptorProto()
        getattr(messages, name).DESCRIPTOR.CopyToProto(whole)
        into = file.message_type.add(name=name)
        into.field.extend(_plain(field) for field in whole.field if field.name in fields)
    pool = DescriptorPool()
    pool.Add(file)
    return pool.FindMessageTypeByName(f"trimmed.{message}")


def _plain(field: FieldDescriptorProto) -> FieldDescriptorProto:
    """The field in the trimmed package: an enum as its number, a message by its trimmed name."""
    if field.type == FieldDescriptorProto.TYPE_ENUM:
        field.type = FieldDescriptorProto.TYPE_INT32
        field.ClearField("type_name")
    elif field.type == FieldDescriptorProto.TYPE_MESSAGE:
        field.type_name = f".trimmed.{field.type_name.rsplit('.', 1)[1]}"
    field.ClearField("json_name")
    return field

"""Messages with text that is not UTF-8: some agents' libraries send it, and protobuf refuses it.

A twin of the message's type is made in which every text is bytes, which look the same on the wire;
the payload is parsed as that twin, its texts are replaced by readable ones, and it is serialised.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

M = TypeVar("M", bound=Message)


def parsed(message: type[M], data: bytes) -> M:
    """Mended where it needs to be; DecodeError where that does not help."""
    try:
        return message.FromString(data)
    except DecodeError:
        return message.FromString(mended(message, data))


def mended(message: type[Message], payload: bytes) -> bytes:
    """The payload with U+FFFD for what is no text; DecodeError when that is not what ails it."""
    descriptor = cast(Descriptor, message.DESCRIPTOR)
    parsed = _twin(descriptor).FromString(payload)
    _mend(parsed, descriptor)
    return parsed.SerializeToString()


@cache
def _twin(descriptor: Descriptor) -> type[Message]:
    pool = DescriptorPool()
    for file in _with_dependencies(descriptor.file):
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        del proto.service[:]
        for message in proto.message_type:
            _texts_to_bytes(message)
        pool.Add(proto)
    return GetMessageClass(pool.FindMessageTypeByName(descriptor.full_name))


def _with_dependencies(file: FileDescriptor) -> list[FileDescriptor]:
    """What a file needs comes before it."""
    found: dict[str, FileDescriptor] = {}
    for needed in file.dependencies:
        found |= {one.name: one for one in _with_dependencies(needed)}
    return list((found | {file.name: file}).values())


def _texts_to_bytes(message: DescriptorProto) -> None:
    for field in message.field:
        if field.type == FieldDescriptorProto.TYPE_STRING:
            field.type = FieldDescriptorProto.TYPE_BYTES
    for nested in message.nested_type:
        _texts_to_bytes(nested)


def _mend(message: Message, descriptor: Descriptor) -> None:
    for field, value in message.ListFields():
        original = descriptor.fields_by_name[field.name]
        if original.message_type is not None:
            for part in value if field.is_repeated else (value,):
                _mend(part, original.message_type)
        elif original.type == FieldDescriptor.TYPE_STRING and field.is_repeated:
            value[:] = [_readable(text) for text in value]
        elif original.type == FieldDescriptor.TYPE_STRING:
            setattr(message, field.name, _readable(value))


def _readable(text: bytes) -> bytes:
    return text.decode("utf-8", "replace").encode("utf-8")

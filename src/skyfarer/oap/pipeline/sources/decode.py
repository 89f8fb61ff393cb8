"""Payloads to Arrow: one contract, two implementations that pass one suite.

`PtarsDecoder` converts a whole array in native code; `ProtobufDecoder` is its plain twin, the
referee in tests and the way out should ptars fail us (`SKYFARER_DECODER=protobuf`). A decoder
refuses a whole array for one bad payload, so `decode` halves a refused array until the bad ones
stand alone: k bad ones among n cost k·log n extra calls, and none stops the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from skyfarer.oap.pipeline.sources.mending import text_schema, with_texts
from skyfarer.oap.pipeline.sources.shapes import Shape, trimmed


class Decoder(Protocol):
    @property
    def schema(self) -> pa.Schema:
        """The columns of a decoded batch, one a kept field."""

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        """One row a payload, in order; ValueError when any of them cannot be decoded."""


class PtarsDecoder:
    def __init__(self, shape: Shape) -> None:
        import ptars

        descriptor = trimmed(shape)
        config = ptars.PtarsConfig(list_value_name="element")
        pool = ptars.HandlerPool([descriptor.file], config=config)
        self._handler = pool.get_for_message(descriptor)
        self._mends = bool(shape.mended)
        self.raw_schema: pa.Schema = self._handler.schema()
        self.schema: pa.Schema = text_schema(self.raw_schema) if self._mends else self.raw_schema

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        batch = self._handler.array_to_record_batch(payloads)
        return with_texts(batch, self.schema) if self._mends else batch


class ProtobufDecoder:
    def __init__(self, shape: Shape) -> None:
        self._descriptor = trimmed(shape)
        self._parse: Callable[[bytes], Message] = message_factory.GetMessageClass(
            self._descriptor
        ).FromString
        twin = PtarsDecoder(shape)
        self._raw_schema, self.schema = twin.raw_schema, twin.schema

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        try:
            parsed = [self._parse(payload) for payload in payloads.to_pylist()]
        except DecodeError as error:
            raise ValueError(str(error)) from error
        rows = [_plain(message, self._descriptor) for message in parsed]
        batch = pa.RecordBatch.from_pylist(rows, schema=self._raw_schema)
        return batch if self._raw_schema == self.schema else with_texts(batch, self.schema)


def _plain(message: Message, descriptor: Descriptor) -> dict[str, Any]:
    return {field.name: _value(message, field) for field in descriptor.fields}


def _value(message: Message, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    if field.message_type is None:
        return list(value) if field.is_repeated else value
    if field.is_repeated:
        return [_plain(item, field.message_type) for item in value]
    return _plain(value, field.message_type) if message.HasField(field.name) else None


DECODERS: dict[str, Callable[[Shape], Decoder]] = {
    "ptars": PtarsDecoder,
    "protobuf": ProtobufDecoder,
}


def decode(
    decoder: Decoder, payloads: pa.BinaryArray
) -> tuple[list[pa.RecordBatch], dict[int, str]]:
    """The rows of every good payload in order, in one batch if there are any, and position → reason
    of the bad ones. A decoder is not asked about nothing: what it refuses is halved until it is a
    single payload."""
    batches: list[pa.RecordBatch] = []
    bad: dict[int, str] = {}
    pending = [(0, len(payloads))] if len(payloads) else []
    while pending:
        start, end = pending.pop()
        try:
            batches.append(decoder.decode_all(payloads.slice(start, end - start)))
        except ValueError as error:
            if end - start == 1:
                bad[start] = str(error)
            else:
                middle = (start + end) // 2
                pending += [(middle, end), (start, middle)]
    return [pa.concat_batches(batches)] if len(batches) > 1 else batches, bad

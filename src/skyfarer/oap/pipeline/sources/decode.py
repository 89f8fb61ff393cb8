"""Payloads to Arrow: one contract, two implementations that pass one suite.

`PtarsDecoder` converts a whole array in native code; `ProtobufDecoder` is its plain twin, the
referee in tests and the way out should ptars fail us. A decoder refuses a whole array for one bad
payload, by an exception or by a panic of its native code, so `decode` halves a refused array until
the bad ones stand alone. Each of these is then given to the other decoder: a record that either of
them can read is analysed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from skyfarer.oap.pipeline.sources.halving import halved
from skyfarer.oap.pipeline.sources.mending import text_schema, with_texts
from skyfarer.oap.pipeline.sources.shapes import Shape, trimmed


class Decoder(Protocol):
    @property
    def schema(self) -> pa.Schema:
        """The columns of a decoded batch, one a kept field."""

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        """Returns a row for each payload, in order. Raises anything where it cannot decode one of
        them; native code may even end the process."""


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


def decoder_named(name: str) -> Callable[[Shape], Decoder]:
    """A constructor of `DECODERS`, or the one that is named as `module:constructor`."""
    if name in DECODERS:
        return DECODERS[name]
    module, _, constructor = name.partition(":")
    made: Callable[[Shape], Decoder] = getattr(import_module(module), constructor)
    return made


def opinions(name: str) -> tuple[str, ...]:
    """The decoders that are asked where this one is chosen: the built-in others come after it."""
    return (name, *(other for other in DECODERS if other != name))[:2]


def decode(
    decoders: Sequence[Callable[[], Decoder]], payloads: pa.BinaryArray
) -> tuple[list[pa.RecordBatch], dict[int, str]]:
    """The rows of every good payload in order, in one batch if there are any, and position → reason
    of the bad ones. The first decoder is asked about all payloads, each other one about those that
    all before it refuse. Raises MemoryError, and nothing else for what a payload holds.
    """
    decoder, others = decoders[0](), decoders[1:]

    def rows(start: int, end: int) -> pa.RecordBatch:
        batch = decoder.decode_all(payloads.slice(start, end - start))
        if batch.num_rows != end - start:
            raise ValueError(f"{batch.num_rows} rows of {end - start} payloads")
        return batch

    done, bad = halved(len(payloads), rows)
    batches = [batch for _, batch in done]
    if bad and others:
        suspects = sorted(bad)
        found, worse = decode(others, payloads.take(pa.array(suspects)))
        reasons = {suspects[at]: f"{bad[suspects[at]]}; then: {why}" for at, why in worse.items()}
        if found:
            places = np.argsort(_places(len(payloads), suspects, reasons))
            return [pa.concat_batches([*batches, *found]).take(pa.array(places))], reasons
        bad = reasons
    return [pa.concat_batches(batches)] if len(batches) > 1 else batches, bad


def _places(count: int, suspects: Sequence[int], bad: Collection[int]) -> npt.NDArray[np.int64]:
    """The positions of the good payloads, those of the suspects among them last."""
    cleared = [place for place in suspects if place not in bad]
    return np.append(np.delete(np.arange(count), suspects), cleared).astype(np.int64)

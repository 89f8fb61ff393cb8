"""Bytes that should be texts, made texts: whatever is not UTF-8 shows as the replacement character.

protobuf refuses a message for one text that is not UTF-8. Agents cut texts by bytes, and a segment
whose only fault is half a character at the end of a tag shall be analysed all the same.
"""

from __future__ import annotations

import pyarrow as pa


def text_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([one.with_type(_text_type(one.type)) for one in schema])


def with_texts(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the form of `text_schema`; columns without such bytes are not copied."""
    columns = zip(batch.columns, schema.types, strict=True)
    return pa.RecordBatch.from_arrays([_texts(*column) for column in columns], schema=schema)


def _text_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        element = kind.value_field
        return pa.list_(element.with_type(_text_type(element.type)))
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_text_type(one.type)) for one in kind])
    return pa.string() if pa.types.is_binary(kind) else kind


def _texts(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_list(kind):
        children = [_texts(array.values, kind.value_type)]
        return pa.Array.from_buffers(
            kind, len(array), array.buffers()[:2], array.null_count, array.offset, children
        )
    if pa.types.is_struct(kind):
        inside = [_texts(array.field(at), one.type) for at, one in enumerate(kind)]
        return pa.StructArray.from_arrays(inside, fields=list(kind), mask=_nulls(array))
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        return pa.array([one and one.decode(errors="replace") for one in array.to_pylist()], kind)


def _nulls(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None

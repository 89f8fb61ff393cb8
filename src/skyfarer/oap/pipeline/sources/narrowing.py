"""Messages without the fields that Spark has no use for; nothing that stays is copied."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa


def without(kind: pa.DataType, paths: Collection[str], at: str = "") -> pa.DataType:
    """The type of a message, without the fields at these paths (`list.field`)."""
    if pa.types.is_list(kind):
        element = kind.value_field
        return pa.list_(element.with_type(without(element.type, paths, at)))
    if not pa.types.is_struct(kind):
        return kind
    kept = [(one, f"{at}.{one.name}".lstrip(".")) for one in kind]
    return pa.struct(
        [one.with_type(without(one.type, paths, path)) for one, path in kept if path not in paths]
    )


def narrowed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """In a type that `without` gave of the array's own."""
    if array.type == kind:
        return array
    if pa.types.is_list(kind):
        children = [narrowed(array.values, kind.value_type)]
        return pa.Array.from_buffers(
            kind, len(array), array.buffers()[:2], array.null_count, array.offset, children
        )
    inside = [narrowed(array.field(one.name), one.type) for one in kind]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(inside, fields=list(kind), mask=mask)

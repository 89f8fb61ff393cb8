"""OTLP exports, cut into spans, or into logs.

One record of the queue is a whole export: many spans of several resources. Parents and children
come in different exports, so a span stands for itself: each becomes a `ResourceSpans` message of
its own, its resource and scope as they came and nothing decoded on the way. Exports of logs are
built alike, with the same numbers, and a log is cut out the same way.

    export    | resource | scope | span a | span b | span c |
    part 0    | resource | scope | span a |
    part 1    | resource | scope | span b |                    …

Of an export with a bad span the good ones are kept; the record itself is parked, once, under the
reason of its first bad span. So it counts as dropped, exactly once, whatever else it held. What
cannot be walked is parked whole. An export without a span has one row, which says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from skyfarer.base.units import MIB
from skyfarer.wire.split import framed, split_apart, split_repeated

RESOURCES = 1  # of an export: resource spans, or resource logs
SCOPES = 2  # of a resource
ITEMS = 2  # of a scope

ITEMS_MAX = 2**16
"""Of one export: 30 times what a collector sends by default."""
PARTS_BYTES_MAX = 64 * MIB
"""Of one export, cut: each part repeats its resource, and a hostile one may be long."""
CHUNK_BYTES = 8 * MIB
"""Parts are handed on when there are so many."""
MALFORMED = "undecodable: not an export"
OVERSIZE = f"oversize: more than {ITEMS_MAX} parts, or {PARTS_BYTES_MAX} bytes when cut into them"


@dataclass
class Cut:
    """Some exports: the place of each part in `sequences`, `numbers`, and the parts themselves.

    `empty` are the exports with nothing in them, `bad` those that were not cut, with the reason.
    """

    sequences: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    bad: dict[int, str] = field(default_factory=dict)


def cut(sequences: Iterable[int], exports: pa.BinaryArray) -> Iterator[Cut]:
    """Never splits an export between two chunks."""
    chunk, size = Cut(), 0
    for sequence, export in zip(sequences, exports, strict=True):
        try:
            parts = parts_of(export.as_py())
        except ValueError as error:
            chunk.bad[sequence] = str(error)
            continue
        if not parts:
            chunk.empty.append(sequence)
        chunk.sequences += [sequence] * len(parts)
        chunk.numbers += range(len(parts))
        chunk.parts += parts
        size += sum(map(len, parts))
        if size >= CHUNK_BYTES:
            yield chunk
            chunk, size = Cut(), 0
    yield chunk


def parts_of(export: bytes) -> list[bytes]:
    """What is in the export, in its order; ValueError, with the reason, when it cannot be cut."""
    parts: list[bytes] = []
    size = 0
    for resource, scope, items in _groups(export):
        size += _size(resource, scope, items)
        if size > PARTS_BYTES_MAX or len(parts) + len(items) > ITEMS_MAX:
            raise ValueError(OVERSIZE)
        parts += [resource + framed(SCOPES, scope + framed(ITEMS, item)) for item in items]
    return parts


def bytes_when_cut(export: bytes) -> int:
    """Of all its parts together, but for a few of their lengths; 0 of one that is not cut."""
    try:
        size = sum(_size(*group) for group in _groups(export))
    except ValueError:
        return 0
    return size if size <= PARTS_BYTES_MAX else 0


def _size(resource: bytes, scope: bytes, items: list[bytes]) -> int:
    return len(items) * (len(resource) + len(scope)) + sum(map(len, items))


def _groups(export: bytes) -> Iterator[tuple[bytes, bytes, list[bytes]]]:
    """(resource, scope, items) of each scope, the first two with all that stands beside them."""
    resources = split_repeated(export, RESOURCES)
    if resources is None:
        raise ValueError(MALFORMED)
    for of_resource in resources:
        resource, scopes = _apart(of_resource, SCOPES)
        for of_scope in scopes:
            yield resource, *_apart(of_scope, ITEMS)


def _apart(message: bytes, number: int) -> tuple[bytes, list[bytes]]:
    apart = split_apart(message, number)
    if apart is None:
        raise ValueError(MALFORMED)
    return apart

"""Two protocols on one path: what a v2 agent sends where a v3 agent without a package calls too.

    path                                   it is v2 if the message
    /TraceSegmentReportService/collect     has fields 1 and 2 only, the last of them 2: a v3 segment
                                           that says anything has its spans, service or instance
    /JVMMetricReportService/collect        has a number for field 2: an instance's id, where v3 has
    /CLRMetricReportService/collect        a service's name
    /ProfileTask/collectSnapshot           has a message for field 2: a segment's id made of three
                                           numbers, where v3 has a text
    /ProfileTask/reportTaskFinish          has a number for field 1 or 2: ids, where v3 has names

What is no message, or says neither, is what the path's own row says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from skyfarer.wire.native import V2_TWINS
from skyfarer.wire.row import Kind, Rpc
from skyfarer.wire.split import varint, walk

IsV2 = Callable[[bytes], bool]

_NUMBER, _LENGTH = 0, 2  # wire types
_V2_SEGMENT_TAGS: Final = (1 << 3 | _LENGTH, 2 << 3 | _LENGTH)
# Of a UniqueId: its numbers packed, or one by one. No id that is text begins with such a byte.
_NUMBERS: Final = (0x0A, 0x08)


def _segment(payload: bytes) -> bool:
    """`walk` in the fewest steps: segments come by the thousand, the others once in a while."""
    position, size, tag = 0, len(payload), 0
    while position < size:
        tag = payload[position]
        if tag not in _V2_SEGMENT_TAGS or position + 1 == size:
            return False
        length = payload[position + 1]
        if length < 0x80:
            position += 2 + length
        else:
            length, position = varint(payload, position + 1)
            position += length
    return position == size and tag == _V2_SEGMENT_TAGS[-1]


def _instance_number(payload: bytes) -> bool:
    return (2 << 3 | _NUMBER) in _tags(payload)


def _snapshot(payload: bytes) -> bool:
    ids = [
        payload[start] in _NUMBERS
        for tag, start, end in walk(payload)
        if tag == 2 << 3 | _LENGTH and end > start
    ]
    return any(ids)


def _finish(payload: bytes) -> bool:
    return not _tags(payload).isdisjoint((1 << 3 | _NUMBER, 2 << 3 | _NUMBER))


def _tags(payload: bytes) -> set[int]:
    return {tag for tag, _, _ in walk(payload)}


_RULES: Final[Mapping[int, IsV2]] = {
    Kind.V2_SEGMENT: _segment,
    Kind.V2_JVM_METRICS: _instance_number,
    Kind.V2_CLR_METRICS: _instance_number,
    Kind.V2_PROFILE_SNAPSHOT: _snapshot,
    Kind.V2_PROFILE_FINISH: _finish,
}
TWINS: Final[Mapping[str, Rpc]] = {rpc.path: rpc for rpc in V2_TWINS if rpc.kind in _RULES}


def is_v2(kind: int, payload: bytes) -> bool:
    """Whether it is such a message, rather than what its path stands for. Never raises."""
    try:
        return _RULES[kind](payload)
    except ValueError:
        return False

"""Messages that would unpack into far more than they are.

An empty span takes two bytes on the wire and forty times as many decoded, so four megabytes of them
would take two hundred. Elements of the lists that a shape keeps are counted on the wire before they
are decoded, and only in payloads long enough to hold too many; the count ends at the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.wire.rpc import Kind
from skyfarer.wire.split import walk

ELEMENTS_MAX = 10_000
"""Of all lists of a record together: spans, their references and tags, attributes, labels, …"""
ELEMENT_BYTES = 2
"""At least: a tag and a length."""
OVERSIZE = "oversize: too many elements: spans, references, tags, attributes, properties, metrics"

Lists: TypeAlias = Mapping[int, "Lists"]
"""Field number of a list → the lists in each of its elements."""

_SPANS_V2: Lists = {2: {5: {}, 15: {}}}
_METRICS: Lists = {1: {3: {}, 4: {}, 5: {}}}
_METER: Lists = {1: {2: {}}, 2: {3: {}}}
_LISTS: Mapping[int, Lists] = {
    Kind.SEGMENT: {3: {5: {}, 12: {}}},
    Kind.INSTANCE_PROPERTIES: {3: {}},
    Kind.V2_SEGMENT: {1: {}, 2: _SPANS_V2},
    Kind.LOG: {7: {1: {}}},
    Kind.EVENT: {6: {}},
    Kind.OTLP_TRACES: {1: {1: {}}, 2: {2: {9: {}}}},
    Kind.OTLP_LOGS: {1: {1: {}}, 2: {2: {6: {}}}},
    Kind.JVM_METRICS: _METRICS,
    Kind.CLR_METRICS: {1: {}},
    Kind.V2_JVM_METRICS: _METRICS,
    Kind.V2_CLR_METRICS: {1: {}},
    Kind.METER: _METER,
    Kind.METER_COLLECTION: {1: _METER},
    Kind.MESH_METRICS: {1: {1: {18: {}}}, 2: {1: {13: {}}}},
}
_MORE: Mapping[int, int] = {Kind.METER_COLLECTION: 300_000}
"""A collection is all that a scrape has found, with some labels each; an element is next to nothing
but its texts."""


def bombs_among(kind: int, payloads: pa.BinaryArray) -> list[int]:
    """The positions of those with too many elements. What is no message at all is not for here."""
    lists = _LISTS.get(kind)
    if lists is None:
        return []
    most = _MORE.get(kind, ELEMENTS_MAX)
    suspects = np.flatnonzero(pc.binary_length(payloads).to_numpy() > ELEMENT_BYTES * most)
    return [at for at in suspects.tolist() if _left(payloads[at].as_py(), lists, most) < 0]


def _left(payload: bytes, lists: Lists, allowance: int) -> int:
    """What is left of the allowance; below 0 as soon as it is exceeded."""
    try:
        for tag, start, end in walk(payload):
            inner = lists.get(tag >> 3)
            if inner is None or tag & 7 != 2:
                continue
            allowance -= 1
            if inner and allowance >= 0:
                allowance = _left(payload[start:end], inner, allowance)
            if allowance < 0:
                break
    except ValueError:
        return allowance
    return allowance

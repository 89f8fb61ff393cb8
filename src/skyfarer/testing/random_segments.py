"""Segments that no agent would send, and all that they do send: a hypothesis strategy.

Names, addresses and tags come from small pools, so that segments meet: they call each other, share
entities and minutes, and use addresses that are gateways or stand for somebody. Beside the usual
there is what breaks analysis: missing names, kinds from newer agents, numbers that are none, tags
that come twice or are too many, spans that end before they start, names of odd spaces alone.

`GATEWAYS`, `ALIASES`, `PROVIDERS` and `PRICES` belong to them: the settings they are to be analysed
with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st

from skyfarer.wire.messages import (
    KeyStringValuePair,
    SegmentObject,
    SegmentReference,
    SpanObject,
)

GATEWAYS: Final = frozenset({"gate.example:80"})
ALIASES: Final[Mapping[str, tuple[str, str]]] = {
    "cart.example:80": ("cart", "cart-1"),
    "gate.example:81": ("web", "web-1"),
}
PROVIDERS: Final[Mapping[str, str]] = {"gpt": "openai", "gpt-oss": "groq", "käse": "näher"}
PRICES: Final[Mapping[str, tuple[float, float]]] = {
    "gpt": (0.25, 2.0),
    "gpt-oss-120b": (1e3, 0.0),
    "käse": (0.1, 1e-9),
}
MINUTES: Final = 3
"""How many minutes the spans of a group start in."""
SPANS_MAX: Final = 4
MANY_TAGS: Final = (125, 126, 127)
"""So many that those after them are at the edge of what is looked at."""

_LONG = "a-name-that-is-longer-than-anything-in-the-settings-says-that-it-may-be." * 3
_SERVICES = ("shop", "cart", "web", "User", "käse", " ", "\t", "\x01", "\u3000", _LONG)
_INSTANCES = ("shop-1", "cart-1", "User", "", _LONG)
_ENDPOINTS = ("/", "GET:/cart", "User", "消费", "", " ", "\x1c", "\xa0", _LONG)
_ADDRESSES = (*GATEWAYS, *ALIASES, "db:5432", "mq:9092", "", " ", "\x1f", "\u2003", _LONG)
_LAYERS = (0, 1, 2, 3, 4, 5, 6, 7, 99)
_TYPES = (0, 0, 1, 1, 2, 9)
_TOOK = (0, 500, 501, 2000, 2001, 2**31, 2**33, -(2**31), -(2**31) - 1, -(2**33))
_COMPONENTS = (0, 1, 22, 6000, 9000)
_NUMBERS = (
    "0",
    "200",
    "+404",
    "-1",
    "007",
    " 5",
    "1.5",
    "1e3",
    "",
    "x",
    "٣",
    "1000000000",
    "-2147483648",
    "2147483648",
    "9" * 19,
)
_TOKENS = (*_NUMBERS, "1", "2", "3", "1000000000000", "-9223372036854775809")
"""None so large that the tokens of an hour would not fit 64 bits."""
_LOGIC = (
    '{"logic-span": true}',
    '{"logic-span": false}',
    '{"name": "logic", "latency": 7, "status": true}',
    '{"logic-span": true, "name": "both", "latency": 8, "status": false, "more": {"a": [1]}}',
    '{"name": "half", "latency": 9}',
    '{"latency": 9, "status": true}',
    '{"name": "", "latency": 0, "status": true}',
    '{"name": 5, "latency": "12", "status": "TRUE"}',
    '{"name": "float", "latency": 1.5, "status": 1}',
    '{"name": null, "latency": 1, "status": true}',
    '{"logic-span": "true", "latency": 3}',
    '{"name": "long", "latency": 3000000000, "status": true}',
    '{"name": "back", "latency": -3e9, "status": true}',
    '{"name": "none", "latency": "NaN", "status": true}',
    "{'name': 'it\\'s', 'latency': '4', 'status': true}",
    "{'logic-span': 'true'} and more",
    '{"name": "first", "name": "again", "latency": 5, "status": true}',
    '{"name": "cut"',
    "[]",
    "true",
    "",
)
_TAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "http.status_code": _NUMBERS,
    "status_code": _NUMBERS,
    "transmission.latency": _NUMBERS,
    "rpc.status_code": ("OK", "UNAVAILABLE", ""),
    "x-le": _LOGIC,
    "cache.type": ("redis", "Memcached", "", " ", "\x01", "\xa0"),
    "cache.op": ("read", "write", "READ", "", "scan"),
    "mq.topic": ("orders", "", " ", "\u3000", _LONG),
    "mq.queue": ("q1", "", " ", "\x02"),
    "db.type": ("mysql", "MongoDB", ""),
    "db.statement": ("SELECT 1", "", " ", "\x01", "\u3000", "消" * 2_001),
    "cache.cmd": ("get", ""),
    "cache.key": ("k", "käse"),
    "gen_ai.response.model": ("gpt-5", "gpt-oss", "gpt-oss-120b", "gp", "käse", "", " ", _LONG),
    "gen_ai.provider.name": ("openai", "", " ", "\u3000", _LONG),
    "gen_ai.usage.input_tokens": _TOKENS,
    "gen_ai.usage.output_tokens": _TOKENS,
    "gen_ai.server.time_to_first_token": _NUMBERS,
    " spaced\t": (" v ", "\nv", ""),
}


_OF_LAYER: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("db.type", "db.statement"),
    4: ("mq.topic", "mq.queue", "transmission.latency"),
    5: ("cache.type", "cache.op", "cache.cmd", "cache.key"),
    7: (
        *("gen_ai.response.model", "gen_ai.provider.name"),
        *("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
        "gen_ai.server.time_to_first_token",
    ),
}


@st.composite
def _tags(draw: st.DrawFn, layer: int) -> list[KeyStringValuePair]:
    """Those that belong to the layer are mostly there."""
    keys = [key for key in _OF_LAYER.get(layer, ()) if draw(st.integers(0, 3))]
    keys += draw(st.lists(st.sampled_from(sorted(_TAGS)), max_size=4))
    tags = [KeyStringValuePair(key=k, value=draw(st.sampled_from(_TAGS[k]))) for k in keys]
    many = draw(st.sampled_from([0] * 20 + [*MANY_TAGS]))
    logic = [KeyStringValuePair(key="x-le", value=text) for text in _LOGIC[:3]] if many else []
    return [KeyStringValuePair(key="k", value="v")] * many + logic + tags


def _references() -> st.SearchStrategy[SegmentReference]:
    return st.builds(
        SegmentReference,
        refType=st.sampled_from([0, 0, 1]),
        parentService=st.sampled_from([*_SERVICES, ""]),
        parentServiceInstance=st.sampled_from(_INSTANCES),
        parentEndpoint=st.sampled_from(_ENDPOINTS),
        networkAddressUsedAtPeer=st.sampled_from(_ADDRESSES),
    )


@st.composite
def _spans(draw: st.DrawFn, start_ms: int, number: int) -> SpanObject:
    start = start_ms + draw(st.integers(0, MINUTES * 60_000 - 1))
    layer = draw(st.sampled_from(_LAYERS))
    took = draw(st.integers(-20, 3_000) | st.sampled_from(_TOOK))
    return SpanObject(
        spanId=number,
        startTime=start,
        endTime=start + took,
        refs=draw(st.lists(_references(), max_size=3)),
        operationName=draw(st.sampled_from(_ENDPOINTS)),
        peer=draw(st.sampled_from(_ADDRESSES)),
        spanType=draw(st.sampled_from(_TYPES)),  # type: ignore[arg-type]
        spanLayer=layer,  # type: ignore[arg-type]
        componentId=draw(st.sampled_from(_COMPONENTS)),
        isError=draw(st.booleans()),
        tags=draw(_tags(layer)),
        skipAnalysis=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def segments(draw: st.DrawFn, start_ms: int) -> SegmentObject:
    """One that the receivers take: it has an id, a service and a span. Spans are numbered in any
    order, and the first may be missing."""
    numbers = draw(st.lists(st.integers(0, SPANS_MAX), min_size=1, max_size=SPANS_MAX, unique=True))
    return SegmentObject(
        traceId="t",
        traceSegmentId="s",
        spans=[draw(_spans(start_ms, number)) for number in numbers],
        service=draw(st.sampled_from(_SERVICES)),
        serviceInstance=draw(st.sampled_from(_INSTANCES)),
    )


@st.composite
def groups(draw: st.DrawFn, start_ms: int) -> list[SegmentObject]:
    """A few that meet in `MINUTES` minutes; one of them may come again."""
    found = draw(st.lists(segments(start_ms), min_size=1, max_size=4))
    again = draw(st.lists(st.sampled_from(found), max_size=1))
    return found + again

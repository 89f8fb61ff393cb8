"""What one row of the table of calls says, and how the rows of a service are written down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import partial


class Streaming(Enum):
    UNARY = "unary"
    CLIENT_STREAM = "client-stream"
    BIDI = "bidi"


class Handling(Enum):
    """What a satellite does with a call. A server keeps whatever it has a door for."""

    KEEP = "keep"  # queued, and answered when it is durable
    ASK = "ask"  # passed on: the answer, commands included, is the upstream's
    REFUSE = "refuse"  # between the nodes of a cluster, never an agent's


class Kind(IntEnum):
    """What a queued record is. Stored on disk beside it: numbers are only ever added."""

    NONE = 0  # never queued: the caller waits for an answer made from its question
    SEGMENT = 1
    INSTANCE_PROPERTIES = 2
    INSTANCE_PING = 3
    SPAN_ATTACHED_EVENT = 4
    LOG = 5
    EVENT = 6
    METER = 7
    METER_COLLECTION = 8
    JVM_METRICS = 9
    CLR_METRICS = 10
    PROFILE_SNAPSHOT = 11
    PROFILE_GO = 12
    PROFILE_FINISH = 13
    BROWSER_PAGE = 14
    BROWSER_WEB_VITALS = 15
    BROWSER_RESOURCE = 16
    BROWSER_INTERACTION = 17
    BROWSER_ERROR = 18
    MESH_METRICS = 19
    EBPF_PROCESS_PING = 20
    EBPF_PROFILE = 21
    EBPF_ACCESS_LOG = 22
    ASYNC_PROFILE = 23
    PPROF = 24
    V2_SEGMENT = 25
    V2_INSTANCE_PING = 26
    V2_JVM_METRICS = 27
    V2_CLR_METRICS = 28
    V2_PROFILE_SNAPSHOT = 29
    V2_PROFILE_FINISH = 30
    OTLP_TRACES = 31
    OTLP_METRICS = 32
    OTLP_LOGS = 33
    ENVOY_ACCESS_LOG = 34
    ENVOY_METRICS = 35
    INVENTORY = 36  # made by an OAP itself: a name that wants an id, or a sign of life of one
    EBPF_PROCESS = 37
    CONTINUOUS_PROFILING_REPORT = 38
    # Bodies of other projects' HTTP routes, as they came.
    TELEGRAF = 39
    ZIPKIN_V2_JSON = 40
    ZIPKIN_V2_PROTO = 41
    ZIPKIN_V1_JSON = 42
    ZIPKIN_V1_THRIFT = 43
    FIREHOSE_METRICS = 44


@dataclass(frozen=True, slots=True)
class Rpc:
    """One row. Type names are full; a v2 one has the package we gave it, which is never sent.

    `repeated_field`: the request is a collection, and each element of this field is a record.
    `forward_path`: where the same record is sent onward, whichever way it came.
    `routing_key`: the request's field, dotted, whose equal values must reach the same upstream.
    `identity`: fields that a stream's message may leave to the messages before it. A new value of
    the first of them is a new identity. A record has them all, as far as its stream had.
    `call_key`: fields that all messages of one onward call must have in common, since a server
    reads them from one message of the call and holds them for true of all.
    """

    path: str
    streaming: Streaming
    request: str
    response: str
    handling: Handling
    kind: Kind
    repeated_field: int | None = None
    forward_path: str = ""
    routing_key: str | None = None
    identity: tuple[int, ...] = ()
    call_key: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """A row without its service. `forward` is a method of the same service, or a whole path."""

    streaming: Streaming
    handling: Handling
    name: str
    request: str
    kind: Kind = Kind.NONE
    response: str = "Commands"
    repeated_field: int | None = None
    forward: str = ""
    routing_key: str | None = None
    identity: tuple[int, ...] = ()
    call_key: tuple[int, ...] = ()


keep = partial(Method, Streaming.UNARY, Handling.KEEP)
keep_stream = partial(Method, Streaming.CLIENT_STREAM, Handling.KEEP)
ask = partial(Method, Streaming.UNARY, Handling.ASK)
ask_stream = partial(Method, Streaming.CLIENT_STREAM, Handling.ASK)
ask_bidi = partial(Method, Streaming.BIDI, Handling.ASK)
refuse = partial(Method, Streaming.UNARY, Handling.REFUSE)
refuse_stream = partial(Method, Streaming.CLIENT_STREAM, Handling.REFUSE)


def service(name: str, *methods: Method, types: str = "") -> tuple[Rpc, ...]:
    """A service's rows; a type named without a package is of `types`, else of the service's own."""
    package = types or name.rpartition(".")[0]

    def qualified(type_name: str) -> str:
        return type_name if "." in type_name or not package else f"{package}.{type_name}"

    def path(forward: str) -> str:
        return forward if forward.startswith("/") else f"/{name}/{forward}"

    return tuple(
        Rpc(
            path=path(method.name),
            streaming=method.streaming,
            request=qualified(method.request),
            response=qualified(method.response),
            handling=method.handling,
            kind=method.kind,
            repeated_field=method.repeated_field,
            forward_path=path(method.forward or method.name),
            routing_key=method.routing_key,
            identity=method.identity,
            call_key=method.call_key,
        )
        for method in methods
    )

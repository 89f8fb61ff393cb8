"""The kinds of rows that a call gives rise to: what each shows, as one table.

A row of the table names the columns of `spans` and `callers` that a kind shows, as SQL; what it
does not name is empty. Kinds are bits. A call's `mask` has those of the rows that it emits, so one
small array of numbers is all that is exploded, the places of bits to look at, and a column of the
result is one CASE over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntFlag, auto
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.entities import (
    ADDRESS_ALIAS,
    ENDPOINT_META,
    ENTITY_COLUMNS,
    SERVICE_META,
)
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.pipeline.analysis.traffic.tags import LogicEndpoint
from skyfarer.oap.pipeline.analysis.traffic.texts import Names
from skyfarer.oap.pipeline.analysis.traffic.wanted import Wanted


def _place(kind: int) -> int:
    """Of its one bit."""
    return kind.bit_length() - 1


class Kind(IntFlag):
    SERVICE = auto()
    INSTANCE = auto()
    ENDPOINT = auto()
    SERVICE_RELATION = auto()
    INSTANCE_RELATION = auto()
    ENDPOINT_RELATION = auto()
    ALIAS = auto()
    SERVICE_CALLED = auto()  # relations that an exit span tells of
    INSTANCE_CALLED = auto()
    VIRTUAL_SERVICE = auto()
    DATABASE = auto()
    CACHE = auto()
    MQ = auto()
    VIRTUAL_ENDPOINT = auto()
    MQ_ENDPOINT = auto()
    OTHER_THREAD = auto()  # the endpoint that an exit or local span was started by
    THREAD_ENDPOINT = auto()
    THREAD_RELATION = auto()


LOGIC: Final = 1 << len(Kind)
"""Logic endpoints are as many as a span has tags of them: each has this bit."""
_TAG: Final = 128
"""The first of the places that number its tags: a bit, and the bits below it are the number."""
TAGS_MAX: Final = 127
"""Of a span with a logic endpoint: those after that many are not looked at."""
_STRETCHES: Final = (
    (),
    range(_place(Kind.SERVICE), _place(Kind.SERVICE_CALLED)),
    range(_place(Kind.SERVICE_CALLED), _place(Kind.OTHER_THREAD)),
)
"""The places of what most calls emit: nothing, what was served, or what was called."""
_NOTHING: Final = "CAST(NULL AS STRING)"
_EMPTY: Final[Mapping[str, str]] = {
    **dict.fromkeys(ENTITY_COLUMNS, "''"),
    **dict.fromkeys(("layer", "from_layer", "component", "latency"), "0"),
    "status": "false",
    "http_code": "0",
    **dict.fromkeys(("rpc_code", "type", "operation"), _NOTHING),
    "transmission_latency": "0L",
}
_TAGLESS: Final = "CAST(NULL AS ARRAY<STRING>)"
_NO_TAGS: Final = "CAST(array() AS ARRAY<STRING>)"
_ENDS: Final = ("dest_instance", "dest_endpoint", "source_instance")

_SERVICE = {"service": "service", "layer": "layer"}
_TIMED = {"latency": "latency", "status": "status"}
_CALL = {**_TIMED, "http_code": "http_code", "rpc_code": "rpc_code", "type": "type"}
_FROM = {"from_service": "caller_service", "from_layer": "caller_layer"}
_SERVER = {"component": "component", "detect_point": "'SERVER'"}
_CLIENT = {
    **_CALL,
    "component": "component",
    "detect_point": "'CLIENT'",
    "service": "peer_service",
    "layer": "peer_layer",
    "from_service": "service",
    "from_layer": "layer",
    "dest_instance": "peer_instance",
    "source_instance": "instance",
}
_DEST = {"dest_instance": "instance", "dest_endpoint": "endpoint"}
_ENDS_SERVER = {**_DEST, "source_instance": "caller_instance"}
_BETWEEN_ENDPOINTS = {
    **_SERVICE,
    **_SERVER,
    **_ENDS_SERVER,
    "endpoint": "endpoint",
    "from_service": "owner_service",
    "from_layer": "owner_layer",
    "from_endpoint": "caller_endpoint",
}
_VIRTUAL = {"service": "virtual_service", "layer": "virtual_layer"}
_SENT = {
    **_VIRTUAL,
    "status": "status",
    "operation": "operation",
    "transmission_latency": "transmission_latency",
}
_GENERAL = str(int(Layer.GENERAL))

_SHOWS: Final[Mapping[int, tuple[str, Mapping[str, str]]]] = {
    Kind.SERVICE: ("Service", {**_SERVICE, **_CALL, **_ENDS_SERVER}),
    Kind.INSTANCE: (
        "ServiceInstance",
        {**_SERVICE, "instance": "instance", **_CALL, **_ENDS_SERVER},
    ),
    Kind.ENDPOINT: ("Endpoint", {**_SERVICE, "endpoint": "endpoint", **_CALL, **_ENDS_SERVER}),
    Kind.SERVICE_RELATION: (
        "ServiceRelation",
        {**_SERVICE, **_FROM, **_SERVER, **_CALL, **_ENDS_SERVER},
    ),
    Kind.INSTANCE_RELATION: (
        "ServiceInstanceRelation",
        {
            **_SERVICE,
            **_FROM,
            **_SERVER,
            **_CALL,
            **_ENDS_SERVER,
            "instance": "instance",
            "from_instance": "caller_instance",
        },
    ),
    Kind.ENDPOINT_RELATION: ("EndpointRelation", {**_BETWEEN_ENDPOINTS, **_CALL}),
    Kind.SERVICE_CALLED: ("ServiceRelation", _CLIENT),
    Kind.INSTANCE_CALLED: (
        "ServiceInstanceRelation",
        {**_CLIENT, "instance": "peer_instance", "from_instance": "instance"},
    ),
    Kind.OTHER_THREAD: (
        ENDPOINT_META,
        {"service": "owner_service", "layer": "owner_layer", "endpoint": "caller_endpoint"},
    ),
    Kind.THREAD_ENDPOINT: (
        "Endpoint",
        {**_SERVICE, "endpoint": "endpoint", **_TIMED, **_ENDS_SERVER},
    ),
    Kind.THREAD_RELATION: ("EndpointRelation", {**_BETWEEN_ENDPOINTS, **_TIMED}),
    Kind.ALIAS: (
        ADDRESS_ALIAS,
        {"service": "service", "layer": _GENERAL, "instance": "instance", "endpoint": "address"},
    ),
    Kind.VIRTUAL_SERVICE: (SERVICE_META, _VIRTUAL),
    Kind.DATABASE: ("DatabaseAccess", {**_VIRTUAL, **_TIMED}),
    Kind.CACHE: ("CacheAccess", {**_VIRTUAL, **_TIMED, "operation": "operation"}),
    Kind.MQ: ("MQAccess", _SENT),
    Kind.VIRTUAL_ENDPOINT: (ENDPOINT_META, {**_VIRTUAL, "endpoint": "virtual_endpoint"}),
    Kind.MQ_ENDPOINT: ("MQEndpointAccess", {**_SENT, "endpoint": "virtual_endpoint"}),
    LOGIC: (
        "Endpoint",
        {
            "service": "service",
            "layer": _GENERAL,
            "endpoint": "logic_name",
            "latency": "logic_latency",
            "status": "logic_status",
            "type": "'LOGIC'",
            "dest_instance": "instance",
            "dest_endpoint": "logic_name",
        },
    ),
}
_TAGGED: Final = (Kind.SERVICE, Kind.INSTANCE, Kind.ENDPOINT, Kind.THREAD_ENDPOINT)


def emits(when: Mapping[Kind, Column]) -> Column:
    """The bits of the kinds whose condition holds; one that is null does not."""
    mask = F.lit(0)
    for kind, holds in when.items():
        mask = mask.bitwiseOR(F.when(holds, int(kind)).otherwise(0))
    return mask


class Shown:
    """The expressions of what each kind shows, made once."""

    def __init__(self, names: Names, wanted: Wanted) -> None:
        tag = F.get("logic", F.col("place").bitwiseAND(F.lit(_TAG - 1)))
        logic = LogicEndpoint(F.when(_any(F.lit(LOGIC)), tag), names.endpoint)
        self._places, self._kind = F.explode(_places()), _kind()
        self._emitted = _any(F.col("mask")) | logic.sound
        self._said = {
            "logic_name": logic.name,
            "logic_latency": logic.latency,
            "logic_status": logic.status,
        }
        ends = _ENDS if wanted.ends else ()
        self._columns = (
            _source().alias("source"),
            F.col("minute"),
            *(_column(name, _shown(name), empty) for name, empty in _EMPTY.items()),
            *_tags(wanted),
            *(_column(name, _shown(name), _NOTHING) for name in ends),
        )

    def of(self, calls: DataFrame) -> DataFrame:
        """A row for each bit of `mask` and each logic endpoint, with the columns that it shows."""
        rows = calls.withColumn("place", self._places).withColumn("kind", self._kind)
        return rows.where(self._emitted).withColumns(self._said).select(*self._columns)


def _source() -> Column:
    names = [F.lit(_SHOWS[kind][0]) for kind in (*Kind, LOGIC)]
    return F.get(F.array(*names), F.least("place", F.lit(_place(LOGIC))))


def _kind() -> Column:
    """The bit of a place. It is shifted: Spark looks after each addition whether it went well."""
    return F.call_function("shiftleft", F.lit(1), F.least("place", F.lit(_place(LOGIC))))


def _places() -> Column:
    """Those to look at: of few where all that is emitted is among them. Tags come last."""
    places = F.array(*map(F.lit, range(_place(LOGIC))))
    for few in _STRETCHES[::-1]:
        others = ~sum(1 << place for place in few)
        none = F.col("mask").bitwiseAND(F.lit(others)) == 0
        places = F.when(none, F.array(*map(F.lit, few)).cast("array<int>")).otherwise(places)
    count = F.least(F.size("logic"), F.lit(TAGS_MAX))
    tags = F.sequence(F.lit(_TAG), count + (_TAG - 1))
    return F.when(F.size("logic") > 0, F.concat(places, tags)).otherwise(places)


def _shown(name: str) -> dict[int, str]:
    return {kind: shows[name] for kind, (_, shows) in _SHOWS.items() if name in shows}


def _tags(wanted: Wanted) -> list[Column]:
    columns = [
        _column(name, dict.fromkeys(_TAGGED, name), _NOTHING)
        for name in (f"tag_{n}" for n in range(len(wanted.tag_keys)))
    ]
    if wanted.tags:
        shown: dict[int, str] = {**dict.fromkeys(_TAGGED, "tag_list"), LOGIC: _NO_TAGS}
        columns.insert(0, _column("tags", shown, _TAGLESS))
    return columns


def _column(name: str, shown: Mapping[int, str], empty: str) -> Column:
    """One CASE, with a branch for each thing that is shown."""
    kinds: dict[str, int] = {}
    for kind, what in shown.items():
        kinds[what] = kinds.get(what, 0) | kind
    value = F.expr(empty)
    for what, those in kinds.items():
        value = F.when(_any(F.lit(those)), F.expr(what)).otherwise(value)
    return value.alias(name)


def _any(kinds: Column) -> Column:
    return F.col("kind").bitwiseAND(kinds) != 0

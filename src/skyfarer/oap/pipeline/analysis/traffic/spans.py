"""A row a span: all that it says by itself, whoever called it.

    service, instance, endpoint, layer        the span's own
    peer_service, peer_instance, peer_layer   whom an exit span calls
    virtual_service, virtual_layer, virtual_endpoint   what a span of a database, cache or queue
    operation, transmission_latency                    stands for, and what was done there
    minute, latency, status, component, type, http_code, rpc_code, tags, tag_0, …
    once                                      the kinds that it emits, however often it was called
    logic                                     its tags if one is of a logic endpoint, else null

What is left of the span (`refs`, `peer`, `span_type`, `span_layer`, `skip`) is for `callers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic import tags
from skyfarer.oap.pipeline.analysis.traffic.kinds import Kind, emits
from skyfarer.oap.pipeline.analysis.traffic.texts import Names, among, named, nonblank
from skyfarer.oap.pipeline.analysis.traffic.wanted import Wanted
from skyfarer.wire.messages import SpanLayer, SpanType

_TYPES: Final = {
    SpanLayer.Http: "HTTP",
    SpanLayer.Database: "DATABASE",
    SpanLayer.MQ: "MQ",
    SpanLayer.GenAI: "GenAI",
}
_PEERS: Final = {
    SpanLayer.Database: int(Layer.VIRTUAL_DATABASE),
    SpanLayer.RPCFramework: int(Layer.GENERAL),
    SpanLayer.Http: int(Layer.GENERAL),
    SpanLayer.MQ: int(Layer.VIRTUAL_MQ),
    SpanLayer.Cache: int(Layer.VIRTUAL_CACHE),
    SpanLayer.FAAS: int(Layer.FAAS),
    SpanLayer.GenAI: int(Layer.VIRTUAL_GENAI),
}
"""Whom a span of that layer calls, when its address stands for no service that we know."""


class Spans:
    """The expressions of a row a span, made once: each costs a call of the JVM."""

    def __init__(self, settings: AnalysisSettings, wanted: Wanted) -> None:
        names, span = Names(settings.naming), F.col("span")
        self._segments = (
            names.service(F.col("segment.service")).alias("service"),
            names.instance(F.col("segment.serviceInstance")).alias("instance"),
            F.explode("segment.spans").alias("span"),
        )
        self._sound = F.col("reason").isNull() & F.col("segment").isNotNull()
        self._known = span["spanType"].isin(SpanType.Entry, SpanType.Exit, SpanType.Local)
        self._fields = named(_fields(span, names, settings, wanted))
        self._called = (F.col("span_type") == SpanType.Exit) & (F.col("peer") == F.col("address"))
        asked = {f"tag_{n}": tags.last(key) for n, key in enumerate(wanted.tag_keys)}
        logic = {"logic": F.when(_has_logic() & F.lit(settings.trace_analysis), F.col("tags"))}
        facts = {**_call(), **_virtual(), **asked, **logic}
        left = (*_LEFT, "tag_list") if wanted.tags else _LEFT
        self._facts = (*map(F.col, left), *named(facts))
        self._peer, self._alias = named(_peer(settings)), named(_peer_by_alias(settings))
        self._tagged = named(_tagged())
        self._left = {
            "virtual_service": names.service(F.col("virtual_service")),
            "virtual_endpoint": names.endpoint(F.col("virtual_endpoint")),
            "once": _once(),
        }

    def of(self, rows: DataFrame, aliases: DataFrame | None) -> DataFrame:
        """Rows that cannot be analysed, and those of other kinds, have no spans."""
        spans = rows.where(self._sound).select(*self._segments).where(self._known)
        read = spans.select("service", "instance", *self._fields)
        if aliases is not None:
            read = read.join(F.broadcast(aliases), self._called, "left")
        read = read.select("*", *self._tagged)
        made = read.select(*self._facts, *(self._peer if aliases is None else self._alias))
        return made.withColumns(self._left)


_LEFT: Final = (
    *("service", "instance", "endpoint", "component"),
    *("refs", "peer", "span_type", "span_layer", "skip"),
)


def _fields(
    span: Column, names: Names, settings: AnalysisSettings, wanted: Wanted
) -> Mapping[str, Column]:
    """Names of its own are cut; `keys` are to look its tags up by."""
    fields = {
        "endpoint": names.endpoint(span["operationName"]),
        "start": span["startTime"],
        "end": span["endTime"],
        "peer": span["peer"],
        "span_type": span["spanType"],
        "span_layer": span["spanLayer"],
        "component": span["componentId"],
        "failed": span["isError"],
        "refs": span["refs"],
        "skip": span["skipAnalysis"] if settings.trace_analysis else F.lit(True),
        "tags": span["tags"],
        "keys": tags.keys_of(span["tags"]),
    }
    return {**fields, "tag_list": tags.shown(span["tags"])} if wanted.tags else fields


def _has_logic() -> Column:
    """A skipped entry span has none; a local one may be skipped and have some nevertheless."""
    local, entry = (F.col("span_type") == of for of in (SpanType.Local, SpanType.Entry))
    return (local | (entry & ~F.col("skip"))) & (tags.place(tags.LOGIC_ENDPOINT) > 0)


def _call() -> Mapping[str, Column]:
    spent = F.col("end") - F.col("start")
    faas = F.col("span_layer") == SpanLayer.FAAS
    return {
        "minute": F.floor(F.col("start") / MINUTE_MS),
        "latency": tags.nearest(spent),
        "status": ~F.col("failed"),
        "layer": F.when(faas, int(Layer.FAAS)).otherwise(int(Layer.GENERAL)),
        "type": _by_layer(_TYPES, "RPC"),
        "http_code": tags.http_code(),
        "rpc_code": tags.last(tags.RPC_CODE),
    }


def _peer(settings: AnalysisSettings) -> Mapping[str, Column]:
    names, address = Names(settings.naming), F.col("peer")
    gateway = (F.col("span_layer") == SpanLayer.Http) & among(address, settings.gateways)
    layers = _by_layer(_PEERS, int(Layer.UNDEFINED))
    return {
        "peer_service": names.service(address),
        "peer_instance": names.instance(address),
        "peer_layer": F.when(gateway, int(Layer.VIRTUAL_GATEWAY)).otherwise(layers),
    }


def _peer_by_alias(settings: AnalysisSettings) -> Mapping[str, Column]:
    """A service that told us so is at that address. Some agents cannot know which instance."""
    raw, known = _peer(settings), F.col("alias_service").isNotNull()
    hidden = F.col("component").isin(*settings.no_upstream_components)
    instance = F.when(hidden, "").otherwise(F.col("alias_instance"))
    return {
        "peer_service": F.when(known, F.col("alias_service")).otherwise(raw["peer_service"]),
        "peer_instance": F.when(known, instance).otherwise(raw["peer_instance"]),
        "peer_layer": F.when(known, int(Layer.GENERAL)).otherwise(raw["peer_layer"]),
    }


def _tagged() -> Mapping[str, Column]:
    """What `_virtual` reads more than once: each look in the tags would be planned as often."""
    return {
        "cache_type": nonblank(tags.last(tags.CACHE_TYPE)),
        "cache_op": tags.last(tags.CACHE_OPERATION),
        "topic": nonblank(tags.last(tags.MQ_TOPIC)),
        "queue": nonblank(tags.last(tags.MQ_QUEUE)),
        "late": tags.last(tags.TRANSMISSION),
        "sender": nonblank(F.get("refs", F.lit(0))["networkAddressUsedAtPeer"]),
    }


def _virtual() -> Mapping[str, Column]:
    """The service is null for a span that stands for none."""
    peer, entry = F.col("peer"), F.col("span_type") == SpanType.Entry
    database, cache, mq = (
        F.col("span_layer") == layer
        for layer in (SpanLayer.Database, SpanLayer.Cache, SpanLayer.MQ)
    )
    type_ = F.col("cache_type")
    local = F.concat(type_, F.lit("-local"))
    broker = F.coalesce("sender", peer)
    late = tags.whole(F.col("late"), "long")
    done = F.when(entry, "Consume").otherwise("Produce")
    return {
        "virtual_service": F.when(database, peer)
        .when(cache, F.when(type_.isNotNull(), F.coalesce(nonblank(peer), local)))
        .when(mq & entry, nonblank(broker))
        .when(mq & (F.col("span_type") == SpanType.Exit), nonblank(peer)),
        "virtual_layer": F.when(database, int(Layer.VIRTUAL_DATABASE))
        .when(cache, int(Layer.VIRTUAL_CACHE))
        .otherwise(int(Layer.VIRTUAL_MQ)),
        "virtual_endpoint": F.when(mq, F.concat_ws("/", "topic", "queue")),
        "operation": F.when(cache, _operation()).when(mq, done),
        "transmission_latency": F.when(mq, F.coalesce(late, F.lit(0))).otherwise(0).cast("long"),
    }


def _operation() -> Column:
    written = F.col("cache_op")
    return F.when(written == "write", "Write").when(written == "read", "Read").otherwise("Others")


def _once() -> Column:
    layer, virtual = F.col("span_layer"), F.col("virtual_service").isNotNull()
    mq = virtual & (layer == SpanLayer.MQ)
    topical = mq & (F.col("virtual_endpoint") != "")
    calls = (F.col("span_type") == SpanType.Exit) & ~F.col("skip") & (F.col("peer") != "")
    return emits(
        {
            Kind.SERVICE_CALLED: calls,
            Kind.INSTANCE_CALLED: calls
            & (F.col("instance") != "")
            & (F.col("peer_instance") != ""),
            Kind.VIRTUAL_SERVICE: virtual,
            Kind.DATABASE: virtual & (layer == SpanLayer.Database),
            Kind.CACHE: virtual & (layer == SpanLayer.Cache),
            Kind.MQ: mq,
            Kind.VIRTUAL_ENDPOINT: topical,
            Kind.MQ_ENDPOINT: topical,
        }
    )


def _by_layer(
    table: Mapping[SpanLayer, str] | Mapping[SpanLayer, int], otherwise: str | int
) -> Column:
    value = F.lit(otherwise)
    for layer, of in table.items():
        value = F.when(F.col("span_layer") == layer, of).otherwise(value)
    return value

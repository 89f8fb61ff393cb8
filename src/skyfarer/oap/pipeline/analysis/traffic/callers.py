"""A row a call: a span for each of its references, and one without any once.

caller_service, caller_instance, caller_layer, caller_endpoint   who called; the endpoint null
                                                                 where nobody can know it
owner_service, owner_layer   the service of that endpoint: behind a queue or a gateway it is
                             another than the one that called
address                      under which the span's service was called
mask                         the kinds of rows that this call emits
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.layers import Layer
from skyfarer.oap.pipeline.analysis.settings import AnalysisSettings
from skyfarer.oap.pipeline.analysis.traffic.kinds import Kind, emits
from skyfarer.oap.pipeline.analysis.traffic.texts import Names, among, named, nonblank
from skyfarer.oap.pipeline.sources.shapes import UNTOLD
from skyfarer.wire.messages import RefType, SpanLayer, SpanType

USER: Final = "User"
"""Service, instance and endpoint of a call that nobody says who made."""


class Calls:
    """The expressions of a row a call, made once."""

    def __init__(self, settings: AnalysisSettings) -> None:
        untold = F.coalesce(F.get("refs", F.lit(0))["refType"] == UNTOLD, F.lit(False))
        told = F.when(~untold & ~F.col("skip"), F.col("refs"))
        self._refs = (untold.alias("untold"), F.posexplode_outer(told).alias("nth", "ref"))
        self._callers = named(_callers(settings))
        again = F.col("nth") > 0
        self._said = {
            "mask": F.when(again, 0).otherwise(F.col("once")).bitwiseOR(_emitted(settings)),
            "logic": F.when(F.coalesce(again, F.lit(False)), None).otherwise(F.col("logic")),
        }

    def of(self, spans: DataFrame) -> DataFrame:
        calls = spans.select("*", *self._refs).select("*", *self._callers)
        return calls.withColumns(self._said)


def _callers(settings: AnalysisSettings) -> Mapping[str, Column]:
    names, ref, peer = Names(settings.naming), F.col("ref"), F.col("peer")
    address, mq = ref["networkAddressUsedAtPeer"], F.col("span_layer") == SpanLayer.MQ
    by_peer = mq & nonblank(peer).isNotNull()
    between = ref.isNotNull() & (mq | among(address, settings.gateways))

    def who(cut: Callable[[Column], Column], name: str) -> Column:
        alone = F.when(by_peer, cut(peer)).otherwise(USER)
        return F.when(ref.isNull(), alone).when(between, cut(address)).otherwise(cut(ref[name]))

    service = who(names.service, "parentService")
    alone = F.when(by_peer, int(Layer.VIRTUAL_MQ)).otherwise(int(Layer.UNDEFINED))
    middle = F.when(mq, int(Layer.VIRTUAL_MQ)).otherwise(int(Layer.VIRTUAL_GATEWAY))
    layer = F.when(ref.isNull(), alone).when(between, middle).otherwise(int(Layer.GENERAL))
    told = F.when(ref["parentEndpoint"] != "", names.endpoint(ref["parentEndpoint"]))
    return {
        "address": names.service(address),
        "caller_service": service,
        "caller_instance": who(names.instance, "parentServiceInstance"),
        "caller_layer": layer,
        "caller_endpoint": F.when(ref.isNotNull() | ~by_peer, F.coalesce(told, F.lit(USER))),
        "owner_service": F.when(between, names.service(ref["parentService"])).otherwise(service),
        "owner_layer": F.when(between, int(Layer.GENERAL)).otherwise(layer),
    }


def _emitted(settings: AnalysisSettings) -> Column:
    looked_at, ref = ~F.col("skip"), F.col("ref")
    called = looked_at & (F.col("span_type") == SpanType.Entry)
    started = looked_at & ref.isNotNull() & (F.col("span_type") != SpanType.Entry)
    mq = F.col("span_layer") == SpanLayer.MQ
    known = called & (~F.col("untold") | (F.col("caller_layer") == int(Layer.VIRTUAL_MQ)))
    instances = (F.col("instance") != "") & (F.col("caller_instance") != "")
    endpoints = (F.col("endpoint") != "") & (F.col("caller_endpoint") != "")
    served = F.col("layer") != int(Layer.FAAS)
    addressed = called & ~mq & (ref["refType"] == RefType.CrossProcess)
    gateway = among(ref["networkAddressUsedAtPeer"], settings.gateways)
    gateway |= among(F.col("address"), settings.gateways)
    return emits(
        {
            Kind.SERVICE: called,
            Kind.INSTANCE: called,
            Kind.SERVICE_RELATION: known,
            Kind.INSTANCE_RELATION: known & instances,
            Kind.ENDPOINT: called & served,
            Kind.ENDPOINT_RELATION: known & served & endpoints,
            Kind.ALIAS: addressed & ~gateway,
            Kind.OTHER_THREAD: started,
            Kind.THREAD_ENDPOINT: started,
            Kind.THREAD_RELATION: started & endpoints,
        }
    )

"""v2 segments through the whole pipeline: ids become names, and then nothing tells them apart."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from oap.pipeline.bench import BUCKET, NOON, SHOP, Bench, Calls, wide_form
from skyfarer.oap.core import ids
from skyfarer.oap.core.inventory import InventoryScope
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.pipeline.analysis.form import only
from skyfarer.oap.pipeline.analysis.names import with_names
from skyfarer.oap.pipeline.analysis.v2 import segment_of
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import v2_register
from skyfarer.wire.messages import v2_trace as v2
from skyfarer.wire.rpc import Kind

SERVICE, INSTANCE = InventoryScope.SERVICE, InventoryScope.SERVICE_INSTANCE


def unique(*parts: int) -> v2.UniqueId:
    return v2.UniqueId(idParts=parts)


def span(number: int = 0, **fields: Any) -> v2.SpanObjectV2:
    defaults = {"spanId": number, "parentSpanId": number - 1, "startTime": NOON}
    return v2.SpanObjectV2(**{**defaults, "endTime": NOON + 10, **fields})


def upstream(number: int, *spans: v2.SpanObjectV2, instance: int = 3) -> v2.UpstreamSegment:
    inner = v2.SegmentObject(
        traceSegmentId=unique(instance, number, -1), spans=spans, serviceInstanceId=instance
    )
    traces = [unique(1, 2, 3), unique(4, 5, 6)]
    return v2.UpstreamSegment(globalTraceIds=traces, segment=inner.SerializeToString())


def test_a_v2_segment_is_analysed_and_stored_under_the_names_of_its_ids(registered: Bench) -> None:
    one = upstream(1, span(1, spanType="Exit", peerId=9), span(operationNameId=7, isError=True))
    registered.keep(Kind.V2_SEGMENT, one)
    registered.apply()
    assert registered.calls() == {BUCKET: Calls(1, 10, 1)}
    instance = ids.instance_id(SHOP, "shop-pid:1")
    endpoint = ids.endpoint_id(SHOP, "/pay")
    assert registered.calls("ServiceInstance", instance) == {BUCKET: Calls(1, 10, 1)}
    assert registered.calls("Endpoint", endpoint) == {BUCKET: Calls(1, 10, 1)}
    assert registered.stored() == [
        (
            *("3.1.-1", "1.2.3", SHOP, instance, endpoint, 20261115120000, NOON, 10, True),
            *(one.SerializeToString(), Kind.V2_SEGMENT),
        )
    ]
    assert registered.progress() == Applied(1, 1, {})


def test_a_name_in_the_segment_is_better_than_its_id_and_none_at_all_has_a_name_too(
    registered: Bench,
) -> None:
    named = [span(operationName="/cart"), span(operationName="/cart", operationNameId=7), span()]
    unknown = span(operationNameId=1234)
    segments = [upstream(number, one) for number, one in enumerate([*named, unknown])]
    registered.keep(Kind.V2_SEGMENT, *segments)
    registered.apply()
    found = {one.name for one in registered.storage.endpoints(SHOP, "", 9)}
    assert found == {"/cart", "{domain}"}
    assert registered.calls() == {BUCKET: Calls(4, 40, 0)}
    assert registered.calls("Endpoint", ids.endpoint_id(SHOP, "/cart")) == {BUCKET: Calls(2, 20, 0)}


def test_a_segment_of_an_unknown_instance_is_parked_and_its_neighbours_are_not(
    registered: Bench,
) -> None:
    """Instance 6 exists and its service does not."""
    registered.inventories.add(INSTANCE, 6, "orphan", 1000)
    stranger = [upstream(number, span(), instance=number) for number in (6, 99, 0)]
    registered.keep(Kind.V2_SEGMENT, upstream(1, span()), *stranger, upstream(2, span()))
    registered.apply()
    assert registered.parked() == [
        (1 + number, "unknown_instance", one.SerializeToString())
        for number, one in enumerate(stranger)
    ]
    assert registered.progress() == Applied(5, 2, {"unknown_instance": 3})
    assert registered.calls() == {BUCKET: Calls(2, 20, 0)}


def test_what_cannot_be_decoded_outside_or_inside_is_parked(registered: Bench) -> None:
    inside = v2.UpstreamSegment(globalTraceIds=[unique(1)], segment=b"\xff\xff")
    empty = v2.UpstreamSegment(globalTraceIds=[unique(1)])
    traceless = v2.UpstreamSegment(segment=upstream(1, span()).segment)
    registered.writer.append(Kind.V2_SEGMENT, [b"\xff", b""])
    registered.keep(Kind.V2_SEGMENT, inside, empty, upstream(7), traceless, upstream(1, span()))
    registered.apply()
    assert [(sequence, code) for sequence, code, _ in registered.parked()] == [
        *((0, "undecodable"), (1, "incomplete"), (2, "undecodable")),
        *((3, "incomplete"), (4, "incomplete"), (5, "incomplete")),
    ]
    assert registered.progress() == Applied(7, 1, {"undecodable": 2, "incomplete": 4})


def test_a_resent_v2_segment_counts_once_in_and_across_batches(registered: Bench) -> None:
    one, other = upstream(1, span()), upstream(2, span())
    for batch in ((one, one), (one, other)):
        registered.keep(Kind.V2_SEGMENT, *batch)
        registered.apply()
    assert registered.calls() == {BUCKET: Calls(2, 20, 0)}
    assert registered.progress() == Applied(4, 2, {"duplicate": 2})


def test_one_batch_may_hold_every_protocol_and_storage_is_asked_for_its_ids_alone(
    registered: Bench,
) -> None:
    registered.append(segment("shop", "shop-pid:1", "/pay", NOON, 10, segment_id="v3"))
    registered.keep(Kind.V2_SEGMENT, upstream(1, span(operationNameId=7)))
    registered.writer.append(Kind.PPROF, [b"a profile"])
    registered.apply()
    assert registered.calls() == {BUCKET: Calls(2, 20, 0)}
    assert [row[-2:] for row in registered.stored()][1][1] == Kind.SEGMENT
    assert sorted(registered.inventories.asked) == [
        *((SERVICE, [2]), (INSTANCE, [3]), (InventoryScope.ENDPOINT, [7])),
    ]
    assert registered.progress() == Applied(3, 3, {})


def test_without_v2_segments_storage_is_asked_for_no_names(registered: Bench) -> None:
    registered.append(segment("shop", "shop-1", "/pay", NOON, 10))
    registered.apply()
    assert registered.inventories.asked == []


@pytest.mark.parametrize("decoder", ["ptars", "protobuf"])
def test_all_that_a_v2_segment_says_is_found_in_the_form_of_segments(
    registered: Bench, decoder: str
) -> None:
    """Fields that the present analysis does not keep are made as well, once its shape has them."""
    ref = v2.SegmentReference(
        refType="CrossThread",
        parentTraceSegmentId=unique(8, 8),
        parentSpanId=4,
        parentServiceInstanceId=5,
        networkAddressId=9,
        parentEndpointId=7,
    )
    tag = v2_register.KeyStringValuePair(key="mq.topic", value="t")
    local_span = {"spanLayer": "MQ", "componentId": 41, "spanType": "Local", "tags": [tag]}
    told = span(refs=[ref], peer="mq:1", **local_span)
    registered.keep(Kind.V2_SEGMENT, upstream(1, span(1, peerId=9), told))
    rows = registered.batch(0, 1, decoder).withColumn("v2", only("v2"))
    named = with_names(rows, F.col("v2").isNotNull(), registered.inventories)
    (made,) = named.select(segment_of(wide_form()).alias("segment")).toArrow().to_pylist()
    exit_span, local = made["segment"]["spans"]
    assert (exit_span["peer"], exit_span["parentSpanId"]) == ("db:5432", 0)
    assert (local["peer"], local["spanLayer"], local["componentId"]) == ("mq:1", 4, 41)
    assert local["tags"] == [{"key": "mq.topic", "value": "t"}]
    assert local["refs"] == [
        {
            "refType": 1,
            "traceId": "1.2.3",
            "parentTraceSegmentId": "8.8",
            "parentSpanId": 4,
            "parentService": "web",
            "parentServiceInstance": "web-pid:1",
            "parentEndpoint": "/pay",
            "networkAddressUsedAtPeer": "db:5432",
        }
    ]

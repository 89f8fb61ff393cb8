"""OTLP exports through the whole pipeline: each span a segment of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from oap.pipeline.bench import BUCKET, NOON, WIDE, Bench, Calls
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.pipeline.sources.columns import text_of
from skyfarer.oap.pipeline.sources.decode import DECODERS
from skyfarer.oap.pipeline.sources.exports import parts_of
from skyfarer.oap.pipeline.sources.nested import PartDecoder
from skyfarer.oap.pipeline.sources.otlp import segments_of
from skyfarer.oap.pipeline.sources.shapes import SPAN, UNTOLD
from skyfarer.wire.messages import otlp_trace as otlp
from skyfarer.wire.rpc import Kind

TRACE = bytes(range(1, 17))
Span = otlp.Span


def attributes(values: dict[str, str | int]) -> list[otlp.KeyValue]:
    def value(of: str | int) -> otlp.AnyValue:
        return otlp.AnyValue(**{"int_value" if isinstance(of, int) else "string_value": of})

    return [otlp.KeyValue(key=key, value=value(of)) for key, of in values.items()]


def span(number: int, parent: int = 0, **fields: Any) -> otlp.Span:
    defaults = {
        "trace_id": TRACE,
        "span_id": bytes([number] * 8),
        "parent_span_id": bytes([parent] * 8) if parent else b"",
        "name": f"/op-{number}",
        "kind": Span.SPAN_KIND_SERVER,
        "start_time_unix_nano": NOON * 1_000_000 + 999_999,
        "end_time_unix_nano": (NOON + 10) * 1_000_000 + 999_999,
    }
    return otlp.Span(**{**defaults, **fields})


def export(*spans: otlp.Span, **resource: str) -> otlp.ExportTraceServiceRequest:
    named = {key.replace("_", "."): value for key, value in resource.items()}
    of = otlp.Resource(attributes=attributes({**named}))
    within = otlp.ResourceSpans(resource=of, scope_spans=[otlp.ScopeSpans(spans=spans)])
    return otlp.ExportTraceServiceRequest(resource_spans=[within])


def stored(bench: Bench) -> dict[str, dict[str, Any]]:
    cursor = bench.storage._cursor().execute("FROM segment_20261115")
    names = [column[0] for column in cursor.description]
    rows = (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    return {row["segment_id"]: row for row in rows}


def segment_id(number: int) -> str:
    return f"{TRACE.hex()}.{bytes([number] * 8).hex()}"


def test_a_span_is_stored_as_a_segment_with_its_own_bytes(bench: Bench) -> None:
    whole = export(span(1), span(2, parent=1), service_name="shop", service_instance_id="shop-1")
    bench.keep(Kind.OTLP_TRACES, whole)
    bench.apply()
    rows = stored(bench)
    assert list(rows) == [segment_id(1), segment_id(2)]
    row = rows[segment_id(2)]
    shop = ids.service_id("shop")
    assert (row["trace_id"], row["kind"]) == (TRACE.hex(), Kind.OTLP_TRACES)
    assert (row["service_id"], row["service_instance_id"]) == (
        shop,
        ids.instance_id(shop, "shop-1"),
    )
    assert row["endpoint_id"] == ids.endpoint_id(shop, "/op-2")
    assert (row["start_time"], row["latency"], row["is_error"]) == (NOON, 10, False)
    part = otlp.ResourceSpans.FromString(row["data_binary"])
    assert part.resource == whole.resource_spans[0].resource
    assert [list(scope.spans) for scope in part.scope_spans] == [[span(2, parent=1)]]
    assert bench.progress() == Applied(1, 1, {})


def test_spans_that_were_called_are_counted_and_the_others_are_not(bench: Bench) -> None:
    """A parent in one export, its children in others; kinds 0 to 5, and one from the future."""
    bench.keep(Kind.OTLP_TRACES, export(span(1), service_name="shop"))
    failed = otlp.Status(code=otlp.Status.STATUS_CODE_ERROR)
    others = [span(10 + kind, parent=1, kind=kind) for kind in (0, 1, 3, 4, 9)]
    consumer = span(2, parent=13, kind=Span.SPAN_KIND_CONSUMER, status=failed)
    bench.keep(Kind.OTLP_TRACES, export(*others, service_name="shop"))
    bench.keep(Kind.OTLP_TRACES, export(consumer, service_name="billing"))
    bench.apply()
    assert bench.calls() == {BUCKET: Calls(1, 10, 0)}
    billing = ids.service_id("billing")
    assert bench.calls("Service", billing) == {BUCKET: Calls(1, 10, 1)}
    assert len(stored(bench)) == 7
    assert bench.progress() == Applied(3, 3, {})


def test_a_service_is_named_by_its_resource_and_an_instance_by_the_best_there_is(
    bench: Bench,
) -> None:
    bench.keep(Kind.OTLP_TRACES, export(span(1)))
    bench.keep(Kind.OTLP_TRACES, export(span(2), service_name="shop", host_name="host-1"))
    bench.keep(Kind.OTLP_TRACES, export(span(3), service_name="shop", service_instance_id=""))
    bench.keep(
        Kind.OTLP_TRACES,
        export(span(4), service_name="shop", host_name="h", service_instance_id="i"),
    )
    bench.apply()
    unknown = "unknown_service"[:10]  # as long as names are on this bench
    instances = {
        number: ids.decode_part_id(stored(bench)[segment_id(number)]["service_instance_id"])
        for number in (1, 2, 3, 4)
    }
    shop = ids.service_id("shop")
    assert instances == {
        1: (ids.service_id(unknown), unknown),
        2: (shop, "host-1"),
        3: (shop, "shop"),
        4: (shop, "i"),
    }


def test_an_export_with_a_bad_span_is_parked_once_and_its_good_spans_are_kept(
    bench: Bench,
) -> None:
    good, lacking = span(1), span(2, span_id=bytes(8))
    torn = export(span(3), span(4), lacking, good, service_name="shop").SerializeToString()
    torn = torn.replace(b"/op-3", b"/op\xff3").replace(b"/op-4", b"/op\xff4")
    bench.writer.append(Kind.OTLP_TRACES, [torn])
    bench.keep(Kind.OTLP_TRACES, export(lacking, span(5), service_name="shop"))
    bench.apply()
    assert sorted(stored(bench)) == [segment_id(1), segment_id(5)]
    assert bench.calls() == {BUCKET: Calls(2, 20, 0)}
    assert [parked[:2] for parked in bench.parked()] == [(0, "undecodable"), (1, "incomplete")]
    assert bench.parked()[0][2] == torn
    assert bench.progress() == Applied(2, 0, {"undecodable": 1, "incomplete": 1})


def test_what_is_no_export_is_parked_whole_and_an_empty_one_is_delivered(bench: Bench) -> None:
    bench.writer.append(Kind.OTLP_TRACES, [b"\xff\xff", b"", b"\x0a\x02\x12\x00", b"\x0a\x05x"])
    bench.keep(Kind.OTLP_TRACES, export(span(1), service_name="shop"))
    bench.apply()
    assert bench.parked() == [(0, "undecodable", b"\xff\xff"), (3, "undecodable", b"\x0a\x05x")]
    assert bench.progress() == Applied(5, 3, {"undecodable": 2})
    assert list(stored(bench)) == [segment_id(1)]


def test_a_span_that_comes_again_counts_once(bench: Bench) -> None:
    """Twice in an export, in a second one of the same batch, in a later batch, with new ones."""
    bench.keep(Kind.OTLP_TRACES, export(span(1), span(1), span(2), service_name="shop"))
    bench.keep(Kind.OTLP_TRACES, export(span(2), service_name="shop"))
    bench.apply()
    bench.keep(Kind.OTLP_TRACES, export(span(1), span(2), service_name="shop"))
    bench.keep(Kind.OTLP_TRACES, export(span(2), span(3), service_name="shop"))
    bench.apply()
    assert sorted(stored(bench)) == [segment_id(1), segment_id(2), segment_id(3)]
    assert bench.calls() == {BUCKET: Calls(3, 30, 0)}
    assert bench.progress() == Applied(4, 2, {"duplicate": 2})
    assert bench.consumer.committed() == 4


LAYERS = {
    "Http": {"http.request.method": "GET"},
    "Database": {"http.request.method": "GET", "db.system": "elasticsearch"},
    "MQ": {"messaging.system": "kafka"},
    "RPCFramework": {"rpc.system": "grpc"},
    "Unknown": {"thread.id": 7},
}
PEERS: list[tuple[str, dict[str, str | int]]] = [
    ("db:5432", {"server.address": "db", "server.port": 5432, "peer.service": "x"}),
    ("db", {"server.address": "db"}),
    ("old:80", {"net.peer.name": "old", "net.peer.port": 80}),
    ("cart", {"peer.service": "cart"}),
    ("", {"server.port": 1}),
]


@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_all_that_a_span_says_is_found_in_the_form_of_segments(decoder: str) -> None:
    """Fields that the present analysis does not keep are made as well, once its shape has them."""
    client = Span.SPAN_KIND_CLIENT
    spans = [span(1 + n, kind=client, attributes=attributes(of)) for n, (_, of) in enumerate(PEERS)]
    spans += [span(11 + n, 1, attributes=attributes(of)) for n, of in enumerate(LAYERS.values())]
    spans += [span(21, 1, kind=client), span(22, parent_span_id=bytes(8))]
    parts = pa.array(parts_of(export(*spans, service_name="shop").SerializeToString()), pa.binary())
    lists = ("scope_spans", "spans")
    made = PartDecoder(decoder, SPAN, WIDE, lists, segments_of).decode_all(parts).to_pylist()
    inner = {one["traceSegmentId"]: one["spans"][0] for one in made}
    assert [inner[segment_id(1 + n)]["peer"] for n in range(len(PEERS))] == [
        peer for peer, _ in PEERS
    ]
    layers = [inner[segment_id(11 + n)]["spanLayer"] for n in range(len(LAYERS))]
    assert layers == [3, 1, 4, 2, 0]
    assert inner[segment_id(1)]["refs"] == inner[segment_id(22)]["refs"] == []
    (ref,) = inner[segment_id(11)]["refs"]
    assert (ref["parentTraceSegmentId"], ref["parentSpanId"]) == (segment_id(1), 0)
    assert (ref["traceId"], ref["refType"]) == (TRACE.hex(), UNTOLD)
    database = inner[segment_id(12)]["tags"]
    assert database == [{"key": "db.type", "value": "elasticsearch"}]
    assert inner[segment_id(11)]["tags"] == inner[segment_id(15)]["tags"] == []
    assert (inner[segment_id(11)]["spanId"], inner[segment_id(11)]["parentSpanId"]) == (0, -1)


def test_the_first_of_an_attribute_counts_and_only_text_and_numbers_are_names() -> None:
    pairs = [("a", {"string_value": ""}), ("a", {"string_value": "second"})]
    pairs += [("b", {"bool_value": True}), ("c", {"int_value": -7}), ("c", {"string_value": "no"})]
    told = [otlp.KeyValue(key=key, value=otlp.AnyValue(**value)) for key, value in pairs]
    told.append(otlp.KeyValue(key="d"))
    lists = [[], told, None, told[::-1]]
    form = DECODERS["ptars"](SPAN).schema.field("resource").type.field("attributes").type
    rows = [of if of is None else [plain(one) for one in of] for of in lists]
    column = pa.array(rows, pa.list_(form.value_type))
    found = {key: text_of(column, key).to_pylist() for key in "abcdx"}
    assert found == {
        "a": [None, None, None, "second"],
        "b": [None] * 4,
        "c": [None, "-7", None, "no"],
        "d": [None] * 4,
        "x": [None] * 4,
    }


def plain(one: otlp.KeyValue) -> dict[str, Any]:
    value = {"string_value": one.value.string_value, "int_value": one.value.int_value}
    return {"key": one.key, "value": value if one.HasField("value") else None}

"""How an OTLP export is cut, without Spark."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfarer.oap.pipeline.sources import exports
from skyfarer.oap.pipeline.sources.exports import parts_of
from skyfarer.wire.messages import otlp_trace as otlp

BYTES = st.binary(max_size=8)
ATTRIBUTES = st.lists(
    st.builds(
        otlp.KeyValue,
        key=st.text(max_size=8),
        value=st.builds(otlp.AnyValue, string_value=st.text(max_size=8)),
    ),
    max_size=2,
)
SPANS = st.builds(otlp.Span, trace_id=BYTES, span_id=BYTES, name=st.text(max_size=200))
SCOPES = st.builds(
    otlp.ScopeSpans,
    scope=st.builds(otlp.InstrumentationScope, name=st.text(max_size=8)),
    spans=st.lists(SPANS, max_size=3),
    schema_url=st.text(max_size=8),
)
RESOURCES = st.builds(
    otlp.ResourceSpans,
    resource=st.builds(otlp.Resource, attributes=ATTRIBUTES),
    scope_spans=st.lists(SCOPES, max_size=3),
    schema_url=st.text(max_size=8),
)
EXPORTS = st.builds(otlp.ExportTraceServiceRequest, resource_spans=st.lists(RESOURCES, max_size=3))


def export(*of: otlp.Span) -> bytes:
    within = otlp.ResourceSpans(scope_spans=[otlp.ScopeSpans(spans=of)])
    return bytes(otlp.ExportTraceServiceRequest(resource_spans=[within]).SerializeToString())


@settings(max_examples=100, deadline=None)
@given(EXPORTS)
def test_each_span_is_a_message_with_its_own_resource_and_scope(
    whole: otlp.ExportTraceServiceRequest,
) -> None:
    expected = [
        otlp.ResourceSpans(
            resource=resource.resource,
            schema_url=resource.schema_url,
            scope_spans=[
                otlp.ScopeSpans(scope=scope.scope, schema_url=scope.schema_url, spans=[span])
            ],
        )
        for resource in whole.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    parts = parts_of(whole.SerializeToString())
    assert [otlp.ResourceSpans.FromString(part) for part in parts] == expected


def test_fields_that_we_do_not_know_go_with_every_span_they_stood_beside() -> None:
    span = otlp.Span(name="a").SerializeToString()
    unknown = b"\x7a\x03new"  # field 15, length 3
    scope = b"\x12" + bytes([len(span)]) + span + unknown
    resource = unknown + b"\x12" + bytes([len(scope)]) + scope
    (part,) = parts_of(b"\x0a" + bytes([len(resource)]) + resource)
    assert part.count(unknown) == 2


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_anything_at_all_is_cut_or_refused(anything: bytes) -> None:
    try:
        parts = parts_of(anything)
    except ValueError as error:
        assert str(error).startswith(("undecodable: ", "oversize: "))
    else:
        assert all(isinstance(part, bytes) for part in parts)


@pytest.mark.parametrize("cut_off", [1, 5, 20])
def test_an_export_that_is_cut_short_is_refused_whole(cut_off: int) -> None:
    with pytest.raises(ValueError, match=r"^undecodable: "):
        parts_of(export(otlp.Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="a"))[:-cut_off])


def test_an_export_of_too_many_spans_is_refused_not_cut() -> None:
    empty = [otlp.Span()] * exports.ITEMS_MAX
    assert len(parts_of(export(*empty))) == exports.ITEMS_MAX
    with pytest.raises(ValueError, match=r"^oversize: "):
        parts_of(export(*empty, otlp.Span()))


def test_a_long_resource_that_every_span_would_repeat_is_refused_not_cut() -> None:
    """A megabyte of resource and a thousand spans of nothing would be a gigabyte."""
    long = otlp.KeyValue(key="k", value=otlp.AnyValue(string_value="x" * 2**20))
    within = otlp.ResourceSpans(
        resource=otlp.Resource(attributes=[long]),
        scope_spans=[otlp.ScopeSpans(spans=[otlp.Span()] * 1000)],
    )
    whole = otlp.ExportTraceServiceRequest(resource_spans=[within])
    with pytest.raises(ValueError, match=r"^oversize: "):
        parts_of(whole.SerializeToString())

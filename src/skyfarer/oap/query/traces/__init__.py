"""Traces: stored segments of every protocol become the spans of the query protocol.

    kind         bytes                             read by
    SEGMENT      SegmentObject                     native
    V2_SEGMENT   UpstreamSegment                   registered (ids become names)
    OTLP_TRACES  ResourceSpans with one span       otlp

Contract: an agent's data never costs the answer. A segment whose bytes cannot be read is one span
made from what storage knows of it, and says why; text that is not UTF-8 is mended; what is too
long is cut; a trace has a bound on its spans, tags and bytes (`limits`).
"""

from skyfarer.oap.query.traces.resolver import Traces

__all__ = ["Traces"]

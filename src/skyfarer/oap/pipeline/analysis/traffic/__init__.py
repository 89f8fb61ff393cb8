"""Traffic: what the spans of a batch say about calls, as rows of the sources that metrics read.

    rows (decoded) ── spans.py ──▶ a row a span ── callers.py ──▶ a row a call
        ── kinds.py ──▶ a row for each thing that a call says: of a service, of a relation, …

The rules are SkyWalking's trace analysis. What a span says is worked out once, as plain columns;
which rows come of it is a mask of bits; and a table says which of the columns each row shows. All
of it is expressions that run in the JVM, in one pass.

    source, minute          which source of `core.entities` (or a meta, or an alias); epoch minute
    ENTITY_COLUMNS          whom it speaks of; empty text and 0 where its source has no use for one
    latency, status, http_code, rpc_code, type, operation, transmission_latency
    tags, tag_0, tag_1, …   only what metrics want (`wanted_by`)

What spans say of generative AI is asked apart, of the batches that have such spans (gen_ai.py).

Where the original throws a segment away because of one tag (a logic endpoint that is no JSON, a
transmission latency that is no number, a tag of a cache twice), here the tag says nothing and the
last of a repeated one counts. A latency beyond 32 bits is the largest there is, or the least, where
the original wraps around. And the endpoint that a thread was started by is its owner's, in its
relation and in its meta alike, where the original has the meta under the queue or the gateway
between them.
"""

from skyfarer.oap.pipeline.analysis.traffic.attributes import attribute
from skyfarer.oap.pipeline.analysis.traffic.emitted import Traffic, emitted
from skyfarer.oap.pipeline.analysis.traffic.gen_ai import GenAITraffic
from skyfarer.oap.pipeline.analysis.traffic.gen_ai import attribute as gen_ai_attribute
from skyfarer.oap.pipeline.analysis.traffic.wanted import Wanted, wanted_by

__all__ = [
    "GenAITraffic",
    "Traffic",
    "Wanted",
    "attribute",
    "emitted",
    "gen_ai_attribute",
    "wanted_by",
]

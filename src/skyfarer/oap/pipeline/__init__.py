"""From the ingest queue to results: the only room that imports pyspark.

    sources/   the queue as a Spark streaming source; payloads become Arrow here, in native code
    told/      what the driver is told of each record, found by the workers in whole columns
    analysis/  what segments mean, as DataFrame operations (no Python per span); OTLP and v2 are
               brought into the form of v3 first
    lowering   the plan of metrics → one aggregation; expressions: its parts
    folding    what comes back of it → one wide row per entity and minute
    sink       one micro-batch → one storage transaction, offsets included
    job        the session and its single streaming query

Contract: a record of the queue ends up in storage exactly once, as a result, as a record kept whole
for an analysis to come, or parked with its reason, whatever is killed (ADR 001). It must never drop
a record silently, and never keep state between batches: everything is derived from the queue and
the offsets that storage holds.
"""

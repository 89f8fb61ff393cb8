"""OAL, the metrics language: text in, plan out.

    text --parser--> syntax --checker--> statements that make sense --plan--> accumulators, metrics

Contract: the grammar is SkyWalking's; sources, attributes and functions are those of `sources` and
`functions`. A mistake is one sentence with file, line and column, and every wrong statement of a
file has its own. A plan is plain data: whatever executes it, a Spark query or `interpreter`, needs
no text.

Pure functions on values; nothing here blocks, keeps state or reads anything but the `.oal` files
shipped beside the code. Never Spark, never a storage.
"""

"""What the programs say about themselves: metrics, logs, health, and the port that shows them.

Every self-metric of both programs is a row of `telemetry.table`; nothing else may invent one.
This room counts and reports, and must never be a reason to fail: a gauge that cannot be read
costs its own line, not the scrape, and no call here waits for another process or the network.
"""

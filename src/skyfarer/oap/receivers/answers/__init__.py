"""What the main process answers to calls that cannot be answered by keeping them.

A handler takes a request's bytes and returns an `Outcome`; which path has which is one table
(`desk`). It knows nothing of processes, threads or gRPC, may be called from several threads, and
blocks for as long as storage does. Nothing here writes: what a request changes is handed back as
records for the ingest queue.

    outcome     the contract of a handler
    names       the registry's inventories: cache, then storage; and which names wait for an id
    registering, addresses, pings   the calls of the v2 protocol
    commands    what there is for an agent to do: configuration and profiling tasks
"""

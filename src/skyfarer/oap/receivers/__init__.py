"""Receiving: wire messages become records of the ingest queue, as the bytes they came in.

A receiver is a process of its own that owns one queue (ADR 001), so that Spark's work in the main
process never delays an agent. It must never decode a payload, and never import Spark or storage.

    process     the receiver itself (`python -m skyfarer.oap.receivers.process`)
    resends     the queue's door: a record that a satellite sends again is kept once
    journal     its files (docs/formats/producers.md)
    producers   what they say of all producers; `held`: of one
    supervisor  the main process's side: starts it, merges its metrics, starts it again
"""
